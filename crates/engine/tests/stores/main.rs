//! Stories told in virtual time on real databases: a SQLite file and PostgreSQL.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

mod counts;
mod doctor;
mod fairness;
mod flows;
mod idle;
mod jobs;
mod load;
mod place;
mod resumes;
mod schedules;
mod scripts;
mod stops;
mod sweep;
mod tasks;
mod workers;
