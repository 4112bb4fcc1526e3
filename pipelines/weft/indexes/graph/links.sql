-- Resolution of links as joins, run in this order by graph_links.py. A key is scope, place and name with chr(31) between.

-- files: every document
CREATE TABLE files AS
SELECT uri, coalesce(language, '') AS language, content_type, title, metadata, links, modified_at
FROM read_parquet($documents);

-- places: every chunk by its place in the table, its content's row, the first chunk of its unit and of its document
CREATE TABLE places AS
SELECT place, chunk_id, uri, sequence, level, symbol, anchor, heading_path[-1] AS heading,
       dense_rank() OVER (ORDER BY content_hash) - 1 AS row,
       first_value(place) OVER (PARTITION BY uri, coalesce(symbol, chunk_id) ORDER BY sequence, place) AS unit,
       first_value(place) OVER (PARTITION BY uri ORDER BY sequence, place) AS head
FROM chunk_rows;

-- anchored: all names of places in a unit that has several
CREATE TABLE anchored AS
SELECT unit, p.uri, unnest(string_split(attributes->>'$.anchors', ' ')) AS anchor
FROM chunk_rows JOIN places p USING (place);

-- defined: names that a unit defines beside its own; of those joined to it, under their own symbols
CREATE TABLE defined AS
WITH cut AS (
    SELECT place, defines, string_split(nullif(attributes->>'$.joined', ''), chr(10)) AS joined
    FROM chunk_rows
), named AS (
    SELECT place, unnest(joined) AS name, true AS whole FROM cut
    UNION ALL
    SELECT place, name, symbol IS NULL
    FROM (SELECT place, joined, unnest(defines) AS name FROM cut) JOIN places USING (place)
    WHERE (symbol IS NULL OR NOT list_contains(string_split(symbol, '.'), name))
        AND (joined IS NULL OR NOT list_contains(list_transform(joined, lambda each: string_split(each, '.')[-1]), name))
)
SELECT DISTINCT unit, p.uri, CASE WHEN whole THEN name ELSE symbol || '.' || name END AS name, language
FROM named JOIN places p USING (place) JOIN files f ON f.uri = p.uri;

-- links: every link once, with whoever points; names that a text uses are references where it has no links. A whole name
-- and the last name of a member of something, though they read alike, point to different things.
CREATE TABLE links AS
WITH cut AS (
    SELECT place, links, "references" FROM chunk_rows
), stated AS (
    SELECT place, f.links FROM files f JOIN places p ON p.uri = f.uri AND p.place = p.head
), said AS (
    SELECT place, unnest(links, recursive := true) FROM cut
    UNION ALL
    SELECT place, kind, target, confidence, true AS declared
    FROM (SELECT place, unnest(links, recursive := true) FROM stated)
), used AS (
    SELECT place, unnest("references") AS target FROM cut
), every AS (
    SELECT place, kind, target, max(confidence) AS confidence, bool_or(declared) AS declared
    FROM said GROUP BY place, kind, target, confidence < $whole_from
    UNION ALL
    SELECT DISTINCT place, 'references', target, $name_confidence, false FROM used ANTI JOIN said USING (place)
)
SELECT row_number() OVER (ORDER BY place, kind, target, confidence) AS number, * FROM every;

-- reached: the file that each import leads to, and the name inside it; of several the one nearest in the tree
CREATE TABLE reached AS
WITH met AS (
    SELECT m.number, m.rank, m.rest, l.target, p.uri AS source, b.uri, b.unit,
           list_zip(string_split(p.uri, '/'), string_split(b.uri, '/')) AS steps
    FROM modules m JOIN bearers b USING (key) JOIN links l USING (number) JOIN places p USING (place)
    WHERE b.uri <> p.uri
), best AS (
    SELECT * EXCLUDE (steps), list_position(list_transform(steps, lambda step: step[1] = step[2]), false) AS near
    FROM met QUALIFY rank = min(rank) OVER (PARTITION BY number)
)
SELECT DISTINCT * EXCLUDE (rank) FROM best QUALIFY near = max(near) OVER (PARTITION BY number);

-- imported: the names that each file knows what it imports by: as it says it, dotted, and the last part alone
CREATE TABLE imported AS
WITH dotted AS (
    SELECT *, trim(regexp_replace(regexp_replace(
        target, '\.(jsx?|tsx?|mjs|cjs|h|hpp|hh|hxx)$', ''), '::|[/.]+', '.', 'g'), '.') AS plain
    FROM reached
)
SELECT DISTINCT source, unnest([target, plain, regexp_extract(plain, '[^.]+$')]) AS bound, uri, rest FROM dotted;

-- types: where a file is imported as the one type that it holds, the name is the type's
UPDATE imported SET rest = regexp_extract(bound, '[^.]+$')
FROM files f
WHERE f.uri = imported.uri AND f.language IN ('java', 'kotlin', 'scala', 'csharp') AND imported.rest = ''
    AND EXISTS (SELECT 1 FROM bearers b
                WHERE b.key = 'file' || chr(31) || imported.uri || chr(31) || regexp_extract(bound, '[^.]+$'));

-- taken: single names that a file takes from what it imports
INSERT INTO imported
WITH dotted AS (
    SELECT p.uri AS source, target, regexp_extract(target, '[^.]+$') AS name
    FROM links JOIN places p USING (place) WHERE kind = 'references' AND contains(target, '.')
)
SELECT DISTINCT d.source, name, i.uri, name
FROM dotted d JOIN imported i ON i.source = d.source AND i.rest = '' AND d.target = i.bound || '.' || name;

-- passed_on: a name that the imported file itself imports leads to where that one has it from
CREATE OR REPLACE TABLE imported AS
SELECT DISTINCT i.source, i.bound, coalesce(behind.uri, i.uri) AS uri, coalesce(behind.rest, i.rest) AS rest
FROM imported i
LEFT JOIN (SELECT DISTINCT key FROM bearers WHERE starts_with(key, 'file')) own
    ON own.key = 'file' || chr(31) || i.uri || chr(31) || i.rest AND i.rest <> ''
LEFT JOIN imported behind
    ON own.key IS NULL AND i.rest <> '' AND behind.source = i.uri AND behind.bound = i.rest;

-- few: of bearers of one key no more than tell that they are too many; a name that thousands bear must not be joined
CREATE TABLE few AS
SELECT * FROM bearers QUALIFY row_number() OVER (PARTITION BY key, split_part(uri, '/', 1) ORDER BY unit) <= $most;

-- met: whatever bears one of the keys that a link is looked for under
CREATE TABLE met AS
SELECT w.number, w.rank, w.scope, w.member, b.unit, b.uri
FROM wanted w JOIN few b USING (key)
WHERE w.scope NOT IN ('import', 'imported')
UNION ALL
SELECT w.number, w.rank, w.scope, w.member, b.unit, b.uri
FROM wanted w
JOIN imported i ON w.key = 'import' || chr(31) || i.source || chr(31) || i.bound
JOIN bearers b ON b.key = CASE
    WHEN i.rest = '' AND w.rest = '' THEN 'document' || chr(31) || chr(31) || i.uri
    ELSE 'file' || chr(31) || i.uri || chr(31) || concat_ws('.', nullif(i.rest, ''), nullif(w.rest, '')) END
WHERE w.scope = 'import'
UNION ALL
SELECT w.number, w.rank, w.scope, w.member, b.unit, b.uri
FROM wanted w
JOIN (
    SELECT DISTINCT uri, unnest(['imports', 'members']) AS form, form || chr(31) || source || chr(31) AS key FROM imported
) i USING (key)
JOIN bearers b ON b.key = CASE form WHEN 'members' THEN 'member' ELSE 'file' END || chr(31) || i.uri || chr(31) || w.rest
WHERE w.scope = 'imported'
UNION ALL
SELECT r.number, CASE WHEN b.unit IS NULL THEN 1 ELSE 0 END, 'import', false, coalesce(b.unit, r.unit), r.uri
FROM reached r
JOIN links l ON l.number = r.number AND l.kind = 'imports'
LEFT JOIN imported i ON i.source = r.source AND i.bound = r.target
LEFT JOIN bearers b ON i.rest <> '' AND b.key = 'file' || chr(31) || i.uri || chr(31) || i.rest;

-- found: the bearers at the first place that has any, and how many they are; those of the same source go first
CREATE TABLE found AS
WITH best AS (
    SELECT * FROM met QUALIFY rank = min(rank) OVER (PARTITION BY number)
), kin AS (
    SELECT DISTINCT b.number, b.scope, b.member, b.unit, b.uri, p.uri AS source, l.kind, l.place, l.confidence, l.declared, p.unit AS own,
           split_part(p.uri, '/', 1) = split_part(b.uri, '/', 1) AS akin
    FROM best b JOIN links l USING (number) JOIN places p USING (place)
), near AS (
    SELECT * FROM kin QUALIFY akin = max(akin) OVER (PARTITION BY number)
)
SELECT *, count(*) OVER (PARTITION BY number) AS bearers,
       kind IN $causal AND (min(uri) OVER whole <> max(uri) OVER whole OR unit <> min(unit) OVER whole) AS vague
FROM near WINDOW whole AS (PARTITION BY number);

-- implemented: types with a method of each name that an interface asks for, where no type says what it implements; of n
-- names that agree, the sureness is n / (n + 1)
CREATE TABLE implemented AS
WITH asked AS (
    SELECT p.unit, split_part(p.uri, '/', 1) AS tree, language, unnest(methods) AS method, len(methods) AS methods
    FROM (
        SELECT place, string_split(attributes->>'$.method_set', ' ') AS methods
        FROM chunk_rows
    ) JOIN places p USING (place) JOIN files f ON f.uri = p.uri
    WHERE methods IS NOT NULL
), borne AS (
    SELECT DISTINCT split_part(key, chr(31), 2) AS folder, split_part(uri, '/', 1) AS tree, language,
           string_split(split_part(key, chr(31), 3), '.') AS name
    FROM bearers JOIN files USING (uri)
    WHERE starts_with(key, 'folder' || chr(31)) AND language IN (SELECT language FROM asked)
), able AS (
    SELECT a.unit, a.methods, b.folder, b.name[1] AS type
    FROM asked a JOIN borne b
        ON b.tree = a.tree AND b.language = a.language AND len(b.name) = 2 AND b.name[2] = a.method
    GROUP BY ALL HAVING count(DISTINCT a.method) = a.methods
)
SELECT DISTINCT b.unit AS source, able.unit AS target, methods / (methods + 1.0) AS confidence
FROM able JOIN bearers b ON b.key = concat_ws(chr(31), 'folder', folder, type)
WHERE b.unit <> able.unit;

-- crossed: edges, each once; tests test no tests, what is said more closely is not said again as a reference, and a
-- relation leads to one document or nowhere
CREATE TABLE crossed AS
WITH weighed AS (
    SELECT kind, found.place, found.unit, declared, CASE WHEN declared THEN modified_at END AS time,
           CASE WHEN kind IN $causal THEN confidence ELSE (1 - (1 - confidence) * (1 - share)) / bearers END AS confidence
    FROM found JOIN scopes USING (scope, member) JOIN places t ON t.place = found.unit
    JOIN files f ON f.uri = found.source
    WHERE found.unit <> own AND NOT vague AND (kind <> 'tests' OR declared OR NOT regexp_matches(t.uri, $test_files))
), kept AS (
    SELECT kind, place AS source, unit AS target, max(confidence) AS confidence, bool_or(declared) AS declared,
           max(time) AS time
    FROM weighed
    WHERE confidence >= $least_confidence OR declared
    GROUP BY ALL
    UNION ALL
    SELECT 'implements', source, target, confidence, false, NULL FROM implemented WHERE confidence >= $least_confidence
)
SELECT * FROM kept k
WHERE kind <> 'references' OR declared OR NOT EXISTS (
    SELECT 1 FROM kept o WHERE o.source = k.source AND o.target = k.target AND o.kind <> 'references');

-- unmet: relations that lead to no document, or to several
CREATE TABLE unmet AS
WITH led AS (
    SELECT number, count(DISTINCT uri) AS documents FROM found WHERE unit <> own GROUP BY number
)
SELECT DISTINCT p.uri, kind, target, coalesce(documents, 0) AS documents
FROM links JOIN places p USING (place) LEFT JOIN led USING (number)
WHERE kind IN $causal AND coalesce(documents, 0) <> 1;
