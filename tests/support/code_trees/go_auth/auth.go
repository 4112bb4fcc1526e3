// Package auth says who may enter.
package auth

import (
	"crypto/subtle"
	"errors"
	"time"
)

// ErrToken is returned when the token is not the one that the user was given.
var ErrToken = errors.New("auth: wrong token")

// ErrExpired is returned when the token was right once.
var ErrExpired = errors.New("auth: token expired")

// User is somebody with a token.
type User struct {
	Name    string
	Token   string
	Expires time.Time
	Roles   []string
}

// Validate compares the given token with the user's own in constant time, and refuses it once it has expired.
func (u *User) Validate(token string) error {
	if subtle.ConstantTimeCompare([]byte(u.Token), []byte(normalize(token))) != 1 {
		return ErrToken
	}
	if expired(u.Expires, time.Now()) {
		return ErrExpired
	}
	return nil
}

// Can says whether the user has a role.
func (u *User) Can(role string) bool {
	for _, own := range u.Roles {
		if own == role || own == "admin" {
			return true
		}
	}
	return false
}
