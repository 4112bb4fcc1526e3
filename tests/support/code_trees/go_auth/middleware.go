package auth

import (
	"context"
	"net/http"
)

// Store finds users by their name.
type Store interface {
	Find(ctx context.Context, name string) (*User, error)
}

type key struct{}

// Require lets a request pass only with a user whose token is right, and answers 401 otherwise.
func Require(store Store, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, err := store.Find(r.Context(), r.Header.Get("X-User"))
		if err != nil || user.Validate(r.Header.Get("Authorization")) != nil {
			http.Error(w, "unauthorized", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), key{}, user)))
	})
}

// FromContext returns the user that Require put there.
func FromContext(ctx context.Context) (*User, bool) {
	user, ok := ctx.Value(key{}).(*User)
	return user, ok
}
