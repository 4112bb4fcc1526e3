package ledger

import (
	"errors"
	"testing"
)

type memory struct{ entries []Entry }

func (m *memory) Append(entry Entry) error { m.entries = append(m.entries, entry); return nil }

func (m *memory) Each(visit func(Entry) error) error {
	for _, entry := range m.entries {
		if err := visit(entry); err != nil {
			return err
		}
	}
	return nil
}

func TestTransferIsBookedOnce(t *testing.T) {
	b := NewBook(&memory{})
	b.limits["a"] = 100
	for range 2 {
		if err := b.Transfer(Entry{ID: "1", From: "a", To: "b", Amount: 60}); err != nil {
			t.Fatal(err)
		}
	}
	if b.balances["b"] != 60 {
		t.Fatalf("expected 60, got %d", b.balances["b"])
	}
}

func TestTransferBelowTheLimitIsRefused(t *testing.T) {
	b := NewBook(&memory{})
	if err := b.Transfer(Entry{ID: "1", From: "a", To: "b", Amount: 1}); !errors.Is(err, ErrFunds) {
		t.Fatalf("expected ErrFunds, got %v", err)
	}
}
