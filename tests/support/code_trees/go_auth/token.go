package auth

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"time"
)

// normalize drops what people paste around a token: blanks and the word Bearer.
func normalize(token string) string {
	return strings.TrimSpace(strings.TrimPrefix(token, "Bearer "))
}

// expired says whether a moment lies behind now; a user without an expiry never expires.
func expired(expires, now time.Time) bool {
	return !expires.IsZero() && now.After(expires)
}

// NewToken draws 32 random bytes and writes them in hexadecimal.
func NewToken() (string, error) {
	raw := make([]byte, 32)
	if _, err := rand.Read(raw); err != nil {
		return "", err
	}
	return hex.EncodeToString(raw), nil
}
