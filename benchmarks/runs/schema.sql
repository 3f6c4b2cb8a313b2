-- One run is one SQLite file. This is the whole schema; PRAGMA user_version is its number.
-- JSON columns hold plain values. Times are UTC, ISO 8601. Seats and steps count from 0.

CREATE TABLE run (                      -- exactly one row
  id INTEGER PRIMARY KEY CHECK (id = 1),
  title TEXT NOT NULL,
  package TEXT NOT NULL,                -- version of llm-games that made the file
  config TEXT NOT NULL,                 -- JSON: the configuration with all defaults, no keys
  created TEXT NOT NULL
) STRICT;

CREATE TABLE lock (                     -- the process that runs it now: one row or none
  id INTEGER PRIMARY KEY CHECK (id = 1),
  token TEXT NOT NULL,                  -- every commit checks that it still holds the lock
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  born TEXT NOT NULL,                   -- when the process started, so that pids can be reused
  beat REAL NOT NULL                    -- Unix time of the last sign of life
) STRICT;

CREATE TABLE games (                    -- the [[games]] of the configuration, in order
  id INTEGER PRIMARY KEY,
  label TEXT NOT NULL UNIQUE,
  game TEXT NOT NULL,                   -- name in the registry
  params TEXT NOT NULL,                 -- JSON object: parameters that are not the defaults
  seats TEXT NOT NULL                   -- JSON list of the players' names, as configured
) STRICT;

CREATE TABLE episodes (
  id INTEGER PRIMARY KEY,
  game INTEGER NOT NULL REFERENCES games,
  number INTEGER NOT NULL,              -- 0, 1, ... within its game
  seed INTEGER NOT NULL,                -- all randomness of the episode comes from it
  seating TEXT NOT NULL,                -- JSON list: who sits on each seat, a place in games.seats
  status TEXT NOT NULL DEFAULT 'pending'
    CHECK (status IN ('pending', 'running', 'done', 'void')),
  reason TEXT,                          -- why it is void
  started TEXT,
  ended TEXT,
  UNIQUE (game, number)
) STRICT;

CREATE TABLE messages (                 -- every message of a prompt once
  id INTEGER PRIMARY KEY,
  hash BLOB NOT NULL UNIQUE,
  role TEXT NOT NULL,
  content TEXT NOT NULL
) STRICT;

CREATE TABLE attempts (                 -- every completion, written as it arrives
  episode INTEGER NOT NULL REFERENCES episodes,
  step INTEGER NOT NULL,                -- the number of steps: asked for when the game was over
  seat INTEGER NOT NULL,
  number INTEGER NOT NULL,              -- 0 for the first call of a decision, 1 for the next
  prompt TEXT NOT NULL,                 -- JSON list of message ids
  text TEXT NOT NULL,                   -- as received; '' if no completion came
  finish TEXT NOT NULL,                 -- stop, length, refusal; transient, fatal: no completion
  error TEXT NOT NULL,                  -- why no completion came; '' if one did
  outcome TEXT,                         -- how it was read; NULL until the decision is made
  why TEXT NOT NULL,                    -- what was wrong, for a reply that is not valid
  tokens_in INTEGER NOT NULL,
  tokens_out INTEGER NOT NULL,
  latency REAL NOT NULL,                -- seconds
  seed INTEGER NOT NULL,
  model TEXT NOT NULL,
  detail TEXT NOT NULL,                 -- which rule it broke, where the game tells them apart
  kind TEXT NOT NULL,                   -- what it was asked for: move, plan, belief, ...
  PRIMARY KEY (episode, step, seat, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE notes (                    -- what players wrote down for themselves
  episode INTEGER NOT NULL REFERENCES episodes,
  step INTEGER NOT NULL,                -- as in attempts
  seat INTEGER NOT NULL,
  number INTEGER NOT NULL,              -- 0, 1, ... within the decision
  kind TEXT NOT NULL,                   -- plan, belief, lessons
  content TEXT NOT NULL,                -- JSON object
  PRIMARY KEY (episode, step, seat, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE spent (                    -- all calls by model and seat: also greetings and further
  model TEXT NOT NULL,                  -- tries after a failure, which are in no other table; not
  seat TEXT NOT NULL,                   -- replies from a cache. '' for greetings
  calls INTEGER NOT NULL,
  failures INTEGER NOT NULL,            -- so many of the calls failed
  tokens_in INTEGER NOT NULL,           -- estimates where the server counts nothing
  tokens_out INTEGER NOT NULL,
  seconds REAL NOT NULL,                -- sum of latencies
  money TEXT NOT NULL,                  -- exact decimal, in the currency of the prices
  PRIMARY KEY (model, seat)
) STRICT, WITHOUT ROWID;

CREATE TABLE limits (                   -- how many calls at a time servers have borne
  began TEXT NOT NULL,                  -- when the run was started or resumed
  number INTEGER NOT NULL,              -- 0, 1, ... for each server and model
  model TEXT NOT NULL,
  server TEXT NOT NULL,                 -- its address
  history TEXT NOT NULL,                -- JSON list of [seconds since then, calls in flight]
  PRIMARY KEY (began, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE steps (                    -- what happened, everything included
  episode INTEGER NOT NULL REFERENCES episodes,
  step INTEGER NOT NULL,
  asked TEXT NOT NULL,                  -- JSON list of seats
  record TEXT NOT NULL,                 -- JSON object: the record of the game's Outcome
  rewards TEXT NOT NULL,                -- JSON list, one for each seat: payoffs of this step
  finished TEXT NOT NULL,               -- JSON list of seats that have nothing more to do
  PRIMARY KEY (episode, step)
) STRICT, WITHOUT ROWID;

CREATE TABLE decisions (
  episode INTEGER NOT NULL REFERENCES episodes,
  step INTEGER NOT NULL,
  seat INTEGER NOT NULL,
  action TEXT NOT NULL,                 -- JSON: integer, list by seat (a plan), or null for none
  outcome TEXT NOT NULL,                -- how the last attempt was read; valid without a model
  broke INTEGER NOT NULL,               -- 1: against the rules, the declared treatment was played
  reward REAL NOT NULL,                 -- this seat's payoff in this step
  PRIMARY KEY (episode, step, seat)
) STRICT, WITHOUT ROWID;
