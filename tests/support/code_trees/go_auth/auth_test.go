package auth

import (
	"errors"
	"testing"
	"time"
)

func TestValidate(t *testing.T) {
	u := &User{Name: "mira", Token: "abc"}
	if err := u.Validate("Bearer abc"); err != nil {
		t.Fatalf("expected the token to be right, got %v", err)
	}
	if err := u.Validate("abd"); !errors.Is(err, ErrToken) {
		t.Fatalf("expected ErrToken, got %v", err)
	}
}

func TestExpiredTokenIsRefused(t *testing.T) {
	u := &User{Token: "abc", Expires: time.Now().Add(-time.Hour)}
	if err := u.Validate("abc"); !errors.Is(err, ErrExpired) {
		t.Fatalf("expected ErrExpired, got %v", err)
	}
}

func TestAdminCanEverything(t *testing.T) {
	u := &User{Roles: []string{"admin"}}
	if !u.Can("write") {
		t.Fatal("expected an admin to be allowed")
	}
}
