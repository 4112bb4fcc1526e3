module example.org/auth

go 1.22
