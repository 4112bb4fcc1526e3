package ledger

import (
	"errors"
	"fmt"
	"sync"
)

// ErrFunds is returned when an account has too little.
var ErrFunds = errors.New("ledger: insufficient funds")

// Journal keeps what was booked.
type Journal interface {
	Append(entry Entry) error
	Each(visit func(Entry) error) error
}

// Entry is one transfer.
type Entry struct {
	ID     string
	From   string
	To     string
	Amount int64
}

// Book holds the balance of each account.
type Book struct {
	mu       sync.Mutex
	balances map[string]int64
	done     map[string]bool
	limits   map[string]int64
	journal  Journal
}

// NewBook makes a book over a journal.
func NewBook(journal Journal) *Book {
	return &Book{balances: map[string]int64{}, done: map[string]bool{}, limits: map[string]int64{}, journal: journal}
}

// Transfer moves an amount from one account to another; the same id is booked once. What is written to the journal
// first survives a crash.
func (b *Book) Transfer(entry Entry) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done[entry.ID] {
		return nil
	}
	if err := b.check(entry); err != nil {
		return err
	}
	if err := b.journal.Append(entry); err != nil {
		return fmt.Errorf("not booked: %w", err)
	}
	b.apply(entry)
	return nil
}

// check refuses what would take an account below its limit.
func (b *Book) check(entry Entry) error {
	if b.balances[entry.From]-entry.Amount < -b.limits[entry.From] {
		return ErrFunds
	}
	return nil
}

func (b *Book) apply(entry Entry) {
	b.balances[entry.From] -= entry.Amount
	b.balances[entry.To] += entry.Amount
	b.done[entry.ID] = true
}

// Recover applies every entry of the journal anew.
func (b *Book) Recover() error {
	return b.journal.Each(func(entry Entry) error {
		b.apply(entry)
		return nil
	})
}
