package main

import (
	"log"
	"os"

	"example.org/ledger/ledger"
)

func main() {
	book := ledger.NewBook(nil)
	if err := book.WriteCSV(os.Stdout); err != nil {
		log.Fatal(err)
	}
}
