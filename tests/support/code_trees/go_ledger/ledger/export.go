package ledger

import (
	"encoding/csv"
	"io"
	"sort"
	"strconv"
)

// WriteCSV writes all balances by account, cents as a number with two digits behind the point.
func (b *Book) WriteCSV(out io.Writer) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	names := make([]string, 0, len(b.balances))
	for name := range b.balances {
		names = append(names, name)
	}
	sort.Strings(names)
	w := csv.NewWriter(out)
	for _, name := range names {
		if err := w.Write([]string{name, cents(b.balances[name])}); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

func cents(amount int64) string {
	return strconv.FormatFloat(float64(amount)/100, 'f', 2, 64)
}
