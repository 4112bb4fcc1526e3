package auth

// Validator is whatever can tell a right token from a wrong one.
type Validator interface {
	Validate(token string) error
}
