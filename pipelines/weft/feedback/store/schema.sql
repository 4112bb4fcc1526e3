-- One partition's whole state. Every row of it changes in the transaction that moves `next_offset`.
create table if not exists progress (
    one integer primary key check (one = 1),
    format integer not null,            -- of these tables: see report.py
    topic text not null,
    topic_id text not null,
    partitions integer not null,
    partition integer not null,
    epoch integer not null,             -- who opened last owns the partition
    first_offset integer not null,
    next_offset integer not null,
    clock_ms integer not null,
    consumed integer not null default 0,
    applied integer not null default 0,
    duplicate integer not null default 0,
    dead_lettered integer not null default 0,
    late integer not null default 0,
    holes integer not null default 0,
    unjoined integer not null default 0,
    dropped integer not null default 0, -- events whose evidence came to nothing with their session
    version integer not null default 0, -- moves whenever a session is merged into the evidence, or unlearned
    republished integer not null default 0, -- dead letters before this offset have been told to their topic
    dead_letters_waiting integer not null default 0, -- those of `dead_letters` from there on
    lost integer not null default 0,        -- sum of `losses`
    offset_base integer not null default 0, -- offsets here are the topic's plus so many: see report.py
    log_end integer not null default 0,     -- of the log, as it was read last
    skipped integer not null default 0      -- offsets that nobody will ever deliver, as the log says
);
-- Unread records that the log lost, as a person gave them up. Of a topic that was made again, as many as were known of.
create table if not exists losses (
    offset integer not null,            -- of the first
    records integer not null,
    reason text not null,
    accepted_ms integer not null,
    accepted_by text not null
);
-- Who claims what time it is: what bounds how far one principal carries `clock_ms` (batch.py).
create table if not exists witnesses (
    one integer primary key check (one = 1),
    leader text not null,               -- fingerprint of the principal that claimed the latest time
    leader_ms integer not null,
    others_ms integer not null,         -- the latest time that anybody else claimed
    last text not null,                 -- who the newest record is by
    since integer not null              -- offset of the first record of that run
);
create table if not exists evidence (
    day integer not null,
    domain text not null,
    model text not null,
    agent text not null,
    intent text not null,
    parameter text not null,
    bin text not null,
    micro integer not null,
    primary key (day, domain, model, agent, intent, parameter, bin)
) without rowid;
create table if not exists usage (
    day integer not null,
    content_hash text not null,
    bin text not null,
    principal text not null,
    question text not null default '',  -- empty: none is known
    micro integer not null,
    primary key (day, content_hash, bin, principal, question)
) without rowid;
-- Offsets are unique and grow, so what is oldest is what lies first: purging reads only what it deletes.
create table if not exists seen (
    offset integer primary key,         -- of the last entry
    at_ms integer not null,             -- of the newest entry
    entries blob not null               -- found by an index in memory: see deduplication.py
);
create table if not exists shown (
    offset integer primary key,
    query blob not null unique,
    at_ms integer not null,
    impression blob not null,
    chosen text not null,
    named integer not null default 0    -- whether an inclusion said what was in the context
);
create table if not exists waiting (
    offset integer primary key,
    query blob not null,
    at_ms integer not null,
    feedback blob not null
);
create index if not exists waiting_query on waiting (query);
create table if not exists sessions (
    offset integer primary key,         -- of the record that started it
    session text not null unique,
    principal text not null,
    phase text not null,
    started_ms integer not null,
    heard integer not null,             -- offset of the newest record about it
    heard_ms integer not null,          -- the partition's clock then
    pending integer not null,
    settled integer not null,
    merged integer                      -- offset of the record that merged it
);
create index if not exists sessions_heard on sessions (heard);
create index if not exists sessions_silent on sessions (phase, heard_ms);
create index if not exists sessions_settled on sessions (heard) where settled > 0;
-- What sessions forked from, for their readers: not a function of the log, but of when snapshots were published.
create table if not exists session_forks (
    session integer primary key,        -- its offset
    base text not null,                 -- empty once it has ended
    started_ms integer not null,        -- of the start that it forked at
    settled integer not null,           -- events it had settled before
    report text                         -- what its last merge met
);
-- What a session learned: pending (settled = 0) is its own, settled (1) is a part of what all share, told apart so that it
-- can be taken out again. `payer` and `allowance` say whose allowance it draws on, and which (empty: none).
create table if not exists overlay_evidence (
    session integer not null,           -- its offset
    settled integer not null,
    payer text not null,
    allowance text not null,
    day integer not null,
    domain text not null,
    model text not null,
    agent text not null,
    intent text not null,
    parameter text not null,
    bin text not null,
    micro integer not null,
    primary key (session, settled, payer, allowance, day, domain, model, agent, intent, parameter, bin)
) without rowid;
create table if not exists overlay_usage (
    session integer not null,
    settled integer not null,
    day integer not null,
    content_hash text not null,
    bin text not null,
    principal text not null,
    question text not null default '',  -- empty: none is known
    micro integer not null,
    primary key (session, settled, day, content_hash, bin, principal, question)
) without rowid;
-- How much it draws on allowances.
create table if not exists overlay_draws (
    session integer not null,
    settled integer not null,
    payer text not null,
    allowance text not null,
    day integer not null,
    micro integer not null,
    primary key (session, settled, payer, allowance, day)
) without rowid;
create index if not exists draws_by_day on overlay_draws (day, payer, allowance);
-- What draws on allowances of all sessions that are settled: a share of it is in `evidence` (allowances.py).
create table if not exists merged_evidence (
    payer text not null,
    allowance text not null,
    day integer not null,
    domain text not null,
    model text not null,
    agent text not null,
    intent text not null,
    parameter text not null,
    bin text not null,
    micro integer not null,
    primary key (payer, allowance, day, domain, model, agent, intent, parameter, bin)
) without rowid;
create table if not exists dead_letters (
    offset integer primary key,
    timestamp integer not null,
    reason text not null,
    detail text not null,
    size integer not null,
    sha256 text not null,
    original blob not null
);
create table if not exists dead_letter_reasons (
    reason text primary key,
    count integer not null
) without rowid;
-- Names that producers choose and that are told apart, numbered in the log's order within their kind.
create table if not exists names (
    kind text not null,
    number integer not null,
    name text not null,
    primary key (kind, number)
) without rowid;
create unique index if not exists names_by_name on names (kind, name);
create table if not exists overflow (
    kind text primary key,
    events integer not null
) without rowid;
-- How much was drawn on a principal's allowances of a day, outside of sessions and by those that are settled.
create table if not exists allowances (
    payer text not null,
    allowance text not null,            -- empty: of weights, else what is reported
    day integer not null,
    merged integer not null,            -- 1: by settled sessions
    micro integer not null,
    primary key (day, payer, allowance, merged)
) without rowid;
-- Principals among `names` that share one allowance of every day before the one from which on they have a history (names.py).
create table if not exists newcomers (
    principal text primary key,         -- its fingerprint
    since integer not null
) without rowid;
-- Applied events by source and type: who shows results, and who says what became of them.
create table if not exists heard (
    kind text not null,
    name text not null,
    what text not null,
    events integer not null,
    primary key (kind, name, what)
) without rowid;
