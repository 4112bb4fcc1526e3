package ledger

import "time"

// Rate is a yearly rate in hundredths of a percent.
type Rate int64

// Accrue gives the interest of some days: by the day, a year having 360, fractions of a cent dropped.
func Accrue(balance int64, rate Rate, from, to time.Time) int64 {
	days := int64(to.Sub(from).Hours() / 24)
	if days <= 0 || balance <= 0 {
		return 0
	}
	return balance * int64(rate) * days / (360 * 10_000)
}
