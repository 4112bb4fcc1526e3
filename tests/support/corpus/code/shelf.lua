-- Copyright.

local io = require("example.books")

local LIMIT = 3

-- Holds books.
local Shelf = {}
Shelf.__index = Shelf

--- Puts a book in.
function Shelf:add(book)
  if #self.books >= LIMIT then
    error("full")
  end
  self:log(book)
  return io.write(book)
end

function Shelf.log(book) end

local function open_shelf()
  return setmetatable({}, Shelf)
end

local first = function(shelf)
  return shelf.books[1]
end

return Shelf
