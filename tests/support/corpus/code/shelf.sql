-- Copyright.

-- Holds books.
CREATE TABLE shelf (
    id integer PRIMARY KEY,
    name text NOT NULL
);

CREATE INDEX shelf_name ON shelf (name);

/* Every open shelf. */
CREATE VIEW open_shelf AS
SELECT * FROM shelf WHERE name IS NOT NULL;

-- Puts a book in.
CREATE OR REPLACE FUNCTION add_book(book text) RETURNS integer AS $$
BEGIN
    INSERT INTO shelf (name) VALUES (book);
    RETURN 1;
END;
$$ LANGUAGE plpgsql;

CREATE TRIGGER shelf_added AFTER INSERT ON shelf
    FOR EACH ROW EXECUTE FUNCTION add_book();

INSERT INTO shelf (id, name) VALUES (1, 'first');

SELECT s.name, count(*) FROM shelf s JOIN book b ON b.shelf = s.id GROUP BY s.name;
