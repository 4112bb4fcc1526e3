# Copyright.

require 'example/books'
require_relative './io'

LIMIT = 3

module Shelves
  # Holds books.
  class Shelf < Base
    include Counts
    attr_reader :books

    # Puts a book in.
    def add(book)
      raise 'full' if books.size >= LIMIT
      log(book)
      Io.write(book)
    end

    def self.open
      new
    end

    private

    def log(book); end
  end
end

def helper(x)
  x + 1
end

RSpec.describe Shelf do
  it 'adds a book' do
    expect(Shelf.new.add(1)).to be true
  end
end
