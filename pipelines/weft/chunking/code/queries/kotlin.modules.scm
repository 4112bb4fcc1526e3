(import_header (identifier) @module (import_alias (type_identifier) @alias))
(import_header (identifier) @module .)
