-- Resolution of links as joins, in the rounds of build.py. A key is scope, place and name with chr(31) between. The number
-- of a link says which partition gave it.

-- placed: every chunk of the shard by its place in the table, and its content's row
CREATE VIEW placed AS
SELECT place, chunk_id, uri, sequence, level, symbol, anchor, heading_path[-1] AS heading,
       {first_row} + dense_rank() OVER (ORDER BY content_hash) - 1 AS row
FROM stored_chunks;

-- chunk_rows: what it says
CREATE VIEW chunk_rows AS
SELECT place, uri, attributes, defines, links, "references" FROM stored_chunks;

-- files: every document of the partition
CREATE TABLE files AS
SELECT uri, coalesce(language, '') AS language, content_type, title, metadata, links, modified_at
FROM stored_documents;

-- packages: files that make their folder a package; an empty one is no document, but was noted as blank
CREATE TABLE packages AS
SELECT uri FROM files WHERE ends_with(uri, $package)
UNION SELECT uri FROM stored_rejected WHERE ends_with(uri, $package) AND reason = 'blank';

-- places: every chunk of these, with the first one of its unit and of its document
CREATE TABLE places AS
SELECT *,
       first_value(place) OVER (PARTITION BY uri, coalesce(symbol, chunk_id) ORDER BY sequence, place) AS unit,
       first_value(place) OVER (PARTITION BY uri ORDER BY sequence, place) AS head
FROM placed;

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
SELECT row_number() OVER (ORDER BY place, kind, target, confidence) * {partitions} + {partition} AS number, * FROM every;

-- modules: the keys of files and folders that links may mean, for whoever bears them
CREATE VIEW modules AS
SELECT m.*, target, p.uri AS source FROM module_keys m JOIN links USING (number) JOIN places p USING (place);

-- reaching: all that bear them
CREATE VIEW reaching AS
SELECT number, rank, rest, target, source, b.uri, b.unit
FROM modules JOIN bearers b USING (key) WHERE b.uri <> source;

-- reached: the file that each import leads to, and the name inside it; of several the one nearest in the tree
CREATE TABLE reached AS
WITH met AS (
    SELECT *, list_zip(string_split(source, '/'), string_split(uri, '/')) AS steps FROM reaching
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

-- file_keys: what files hold, for those that import them
CREATE TABLE file_keys AS
SELECT DISTINCT key FROM bearers WHERE starts_with(key, 'file' || chr(31));

-- typed: where a file is imported as the one type that it holds, the name is the type's
CREATE TABLE typed AS
SELECT source, bound, uri, CASE WHEN own.key IS NULL THEN rest ELSE regexp_extract(bound, '[^.]+$') END AS rest
FROM imported i LEFT JOIN files f USING (uri) LEFT JOIN file_keys own
    ON i.rest = '' AND f.language IN ('java', 'kotlin', 'scala', 'csharp')
    AND own.key = 'file' || chr(31) || i.uri || chr(31) || regexp_extract(bound, '[^.]+$');

-- taken: with single names that a file takes from what it imports
CREATE TABLE taken AS
WITH dotted AS (
    SELECT p.uri AS source, target, regexp_extract(target, '[^.]+$') AS name
    FROM links JOIN places p USING (place) WHERE kind = 'references' AND contains(target, '.')
)
FROM typed
UNION ALL
SELECT DISTINCT d.source, name, i.uri, name
FROM dotted d JOIN typed i ON i.source = d.source AND i.rest = '' AND d.target = i.bound || '.' || name;

-- passed_on: a name that the imported file itself imports leads to where that one has it from
CREATE MACRO IF NOT EXISTS passed_on(asking, own_imports) AS TABLE
SELECT DISTINCT i.source, i.bound, coalesce(behind.uri, i.uri) AS uri, coalesce(behind.rest, i.rest) AS rest
FROM query_table(asking) i
LEFT JOIN file_keys own ON own.key = 'file' || chr(31) || i.uri || chr(31) || i.rest AND i.rest <> ''
LEFT JOIN query_table(own_imports) behind
    ON own.key IS NULL AND i.rest <> '' AND behind.source = i.uri AND behind.bound = i.rest;

-- asking: once
CREATE VIEW asking AS FROM taken;

-- passed: once
CREATE TABLE passed AS FROM passed_on('asking', 'taken');

-- asking_again: twice
CREATE VIEW asking_again AS FROM passed;

-- imports: twice
CREATE TABLE imports AS FROM passed_on('asking_again', 'passed');

-- wants: the keys that links are looked for under
CREATE VIEW wants AS
SELECT number, rank, scope, member, key FROM wanted WHERE scope NOT IN ('import', 'imported');

-- inner_wants: those inside of what is imported
CREATE VIEW inner_wants AS
SELECT w.number, w.rank, w.scope, w.member, NULL::VARCHAR AS through, CASE
    WHEN i.rest = '' AND w.rest = '' THEN 'document' || chr(31) || chr(31) || i.uri
    ELSE 'file' || chr(31) || i.uri || chr(31) || concat_ws('.', nullif(i.rest, ''), nullif(w.rest, '')) END AS key
FROM wanted w JOIN imports i ON w.key = 'import' || chr(31) || i.source || chr(31) || i.bound
WHERE w.scope = 'import'
UNION ALL
SELECT w.number, w.rank, w.scope, w.member, NULL,
       CASE form WHEN 'members' THEN 'member' ELSE 'file' END || chr(31) || i.uri || chr(31) || w.rest
FROM wanted w
JOIN (
    SELECT DISTINCT uri, unnest(['imports', 'members']) AS form, form || chr(31) || source || chr(31) AS key FROM imports
) i USING (key)
WHERE w.scope = 'imported'
UNION ALL
SELECT r.number, 0, 'import', false, r.uri, 'file' || chr(31) || i.uri || chr(31) || i.rest
FROM reached r
JOIN links l ON l.number = r.number AND l.kind = 'imports'
JOIN imports i ON i.source = r.source AND i.bound = r.target AND i.rest <> '';

-- few: of bearers of one key no more than tell that they are too many; a name that thousands bear must not be joined
CREATE TABLE few AS
SELECT * FROM bearers QUALIFY row_number() OVER (PARTITION BY key, split_part(uri, '/', 1) ORDER BY unit) <= $most;

-- met: whatever bears one of the keys that a link is looked for under
CREATE TABLE met AS
SELECT number, rank, scope, member, b.unit, b.uri, NULL::VARCHAR AS through FROM wants JOIN few b USING (key)
UNION ALL
SELECT number, rank, scope, member, b.unit, b.uri, through FROM inner_wants JOIN bearers b USING (key);

-- found: the bearers at the first place that has any, and how many they are; those of the same source go first
CREATE TABLE found AS
WITH every AS (
    FROM met
    UNION ALL
    SELECT number, 1, 'import', false, unit, uri, uri
    FROM reached r JOIN links l USING (number) WHERE l.kind = 'imports'
), best AS (
    SELECT * FROM every QUALIFY rank = min(rank) OVER (PARTITION BY number)
), kin AS (
    SELECT DISTINCT b.*, p.uri AS source, l.kind, l.place, l.confidence, l.declared, p.unit AS own,
           split_part(p.uri, '/', 1) = split_part(coalesce(through, b.uri), '/', 1) AS akin
    FROM best b JOIN links l USING (number) JOIN places p USING (place)
), near AS (
    SELECT * FROM kin QUALIFY akin = max(akin) OVER (PARTITION BY number)
)
SELECT * EXCLUDE (through), count(*) OVER (PARTITION BY number) AS bearers,
       kind IN $causal AND (min(uri) OVER whole <> max(uri) OVER whole OR unit <> min(unit) OVER whole) AS vague
FROM near WINDOW whole AS (PARTITION BY number);

-- asked: names of the methods that interfaces ask for
CREATE TABLE asked AS
SELECT p.unit, p.uri, split_part(p.uri, '/', 1) AS tree, language, unnest(methods) AS method, len(methods) AS methods
FROM (
    SELECT place, string_split(attributes->>'$.method_set', ' ') AS methods
    FROM chunk_rows
) JOIN places p USING (place) JOIN files f ON f.uri = p.uri
WHERE methods IS NOT NULL;

-- borne: names of methods that types of these languages have, by the key of the type in its folder
CREATE VIEW borne AS
WITH named AS (
    SELECT split_part(key, chr(31), 2) AS folder, split_part(uri, '/', 1) AS tree, language,
           string_split(split_part(key, chr(31), 3), '.') AS name
    FROM bearers JOIN files USING (uri)
    WHERE starts_with(key, 'folder' || chr(31)) AND language IN (SELECT language FROM asked)
)
SELECT DISTINCT concat_ws(chr(31), 'folder', folder, name[1]) AS key, tree, language, name[2] AS method
FROM named WHERE len(name) = 2;

-- implemented: types with a method of each name that an interface asks for, where no type says what it implements; of n
-- names that agree, the sureness is n / (n + 1)
CREATE TABLE implemented AS
WITH able AS (
    SELECT a.unit, a.uri, a.methods, key
    FROM asked a JOIN borne b ON b.tree = a.tree AND b.language = a.language AND b.method = a.method
    GROUP BY ALL HAVING count(DISTINCT a.method) = a.methods
)
SELECT DISTINCT b.unit AS source, b.uri AS source_uri, able.unit AS target, able.uri AS target_uri,
       methods / (methods + 1.0) AS confidence
FROM able JOIN bearers b USING (key)
WHERE b.unit <> able.unit;

-- crossed: edges, each once; tests test no tests, what is said more closely is not said again as a reference, and a
-- relation leads to one document or nowhere
CREATE TABLE crossed AS
WITH weighed AS (
    SELECT kind, found.place, found.unit, found.uri, declared, CASE WHEN declared THEN modified_at END AS time,
           CASE WHEN kind IN $causal THEN confidence ELSE (1 - (1 - confidence) * (1 - share)) / bearers END AS confidence
    FROM found JOIN scopes USING (scope, member) JOIN files f ON f.uri = found.source
    WHERE unit <> own AND NOT vague AND (kind <> 'tests' OR declared OR NOT regexp_matches(found.uri, $test_files))
), kept AS (
    SELECT kind, place AS source, unit AS target, uri AS target_uri, max(confidence) AS confidence,
           bool_or(declared) AS declared, max(time) AS time
    FROM weighed
    WHERE confidence >= $least_confidence OR declared
    GROUP BY ALL
    UNION ALL
    SELECT 'implements', source, target, target_uri, confidence, false, NULL
    FROM implemented WHERE confidence >= $least_confidence
)
SELECT * FROM kept k
WHERE kind <> 'references' OR declared OR NOT EXISTS (
    SELECT 1 FROM kept o WHERE o.source = k.source AND o.target = k.target AND o.kind <> 'references');

-- crossing: with the content and the chunk that they come from
CREATE VIEW crossing AS
SELECT kind, s.row AS source_row, s.chunk_id AS source_chunk, target, target_uri, confidence, declared, time
FROM crossed JOIN places s ON s.place = crossed.source;

-- linked: and with those that they lead to
CREATE VIEW linked AS
SELECT crossing.*, t.row AS target_row, t.chunk_id AS target_chunk FROM crossing JOIN places t ON t.place = target;

-- unmet: relations that lead to no document, or to several
CREATE TABLE unmet AS
WITH led AS (
    SELECT number, count(DISTINCT uri) AS documents FROM found WHERE unit <> own GROUP BY number
)
SELECT DISTINCT p.uri, kind, target, coalesce(documents, 0) AS documents
FROM links JOIN places p USING (place) LEFT JOIN led USING (number)
WHERE kind IN $causal AND coalesce(documents, 0) <> 1;
