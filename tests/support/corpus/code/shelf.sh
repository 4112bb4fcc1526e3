#!/bin/bash
# Copyright.

set -e
. ./lib.sh

LIMIT=3

# Puts a book in.
add_book() {
    if [ "$count" -ge "$LIMIT" ]; then
        echo full
        return 1
    fi
    log_book "$1"
    write_book "$1"
}

function log_book {
    echo "$1"
}

add_book "$@"
