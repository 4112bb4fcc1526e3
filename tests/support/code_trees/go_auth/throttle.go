package auth

import (
	"sync"
	"time"
)

// Throttle counts failed attempts of each name.
type Throttle struct {
	mu     sync.Mutex
	failed map[string][]time.Time
	Most   int
	Window time.Duration
}

// Blocked says whether a name failed too often within the window.
func (t *Throttle) Blocked(name string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	recent := t.failed[name][:0]
	for _, at := range t.failed[name] {
		if now.Sub(at) < t.Window {
			recent = append(recent, at)
		}
	}
	t.failed[name] = recent
	return len(recent) >= t.Most
}

// Fail notes a failed attempt.
func (t *Throttle) Fail(name string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed == nil {
		t.failed = map[string][]time.Time{}
	}
	t.failed[name] = append(t.failed[name], now)
}
