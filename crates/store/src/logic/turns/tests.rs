//! A deal that is read in steps against the rule itself.

use std::collections::BTreeMap;
use std::convert::Infallible;

use super::{Deal, Ready, Round, Turns, take};

/// Work by priority and namespace, in its order.
#[derive(Clone, Default)]
struct Shelf {
    work: BTreeMap<(i16, i64), Vec<u32>>,
    read: usize,
}

impl Ready for Shelf {
    type Item = (i16, i64, u32);
    type Fault = Infallible;

    fn priority(&mut self, below: Option<i16>) -> Result<Option<i16>, Infallible> {
        let fits = |priority: &i16| below.is_none_or(|below| *priority < below);
        Ok(self.work.keys().map(|(priority, _)| *priority).filter(fits).max())
    }

    fn namespaces(&mut self, priority: i16) -> Result<Vec<i64>, Infallible> {
        Ok(self.work.keys().filter(|(of, _)| *of == priority).map(|(_, namespace)| *namespace).collect())
    }

    fn first(&mut self, priority: i16, namespace: i64, count: usize) -> Result<Vec<Self::Item>, Infallible> {
        let work = self.work.get(&(priority, namespace)).map_or(&[][..], Vec::as_slice);
        self.read += 1;
        Ok(work.iter().take(count).map(|item| (priority, namespace, *item)).collect())
    }
}

/// The rule: by priority, then one of each namespace after the other from behind the last one on.
fn by_the_rule(shelf: &Shelf, last: Option<i64>, limit: usize) -> Vec<(i16, i64, u32)> {
    let mut all: Vec<_> = Vec::new();
    for ((priority, namespace), work) in &shelf.work {
        let turn = (last.is_some_and(|last| *namespace <= last), *namespace);
        let ranked = work.iter().enumerate();
        all.extend(ranked.map(|(rank, item)| ((-i32::from(*priority), rank, turn), (*priority, *namespace, *item))));
    }
    all.sort_unstable();
    all.into_iter().map(|(_, item)| item).take(limit).collect()
}

fn shelf(seed: u32) -> Shelf {
    let mut random = seed.wrapping_mul(2_654_435_761) | 1;
    let mut next = |below: u32| {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        random % below
    };
    let mut shelf = Shelf::default();
    for _ in 0..next(9) {
        let key = (i16::try_from(next(2)).unwrap(), i64::from(next(6)));
        let count = [0, 1, 2, 5, 40][next(5) as usize];
        shelf.work.insert(key, (0..count).collect());
    }
    shelf
}

#[test]
fn what_is_read_in_steps_is_what_the_rule_says() {
    for seed in 0..3_000 {
        let shelf = shelf(seed);
        for limit in [0, 1, 2, 3, 7, 16, 64] {
            for last in [None, Some(0), Some(3), Some(5)] {
                let mut turns = Turns::default();
                for priority in [0, 1] {
                    if let Some(last) = last {
                        turns.served(Round::Runs(priority), last);
                    }
                }
                let Ok(taken) = take(&mut shelf.clone(), &mut turns, Round::Runs, limit);
                assert_eq!(taken, by_the_rule(&shelf, last, limit), "seed {seed}, limit {limit}, last {last:?}");
            }
        }
    }
}

#[test]
fn a_deal_reads_no_more_than_it_deals() {
    let mut deal = Deal::new(10, vec![1, 2, 3, 4], None);
    let mut read = BTreeMap::new();
    while let Some(ask) = deal.next() {
        for (_, namespace) in &ask.namespaces {
            read.insert(*namespace, ask.each);
        }
        deal.put(&ask, |_| vec![(); ask.each]);
    }
    assert_eq!(read.values().sum::<usize>(), 10, "{read:?}");
    assert_eq!(deal.dealt().len(), 10);
}

#[test]
fn one_namespace_alone_is_read_in_one_step() {
    let mut shelf = Shelf { work: BTreeMap::from([((0, 1), (0..100).collect())]), read: 0 };
    let Ok(taken) = take(&mut shelf, &mut Turns::default(), Round::Runs, 64);
    assert_eq!((taken.len(), shelf.read), (64, 1));
}

#[test]
fn claims_of_one_serve_one_namespace_after_the_other() {
    let mut shelf = Shelf::default();
    for namespace in 0..3 {
        shelf.work.insert((0, namespace), vec![0]);
    }
    let mut turns = Turns::default();
    let mut one = || take(&mut shelf, &mut turns, Round::Runs, 1).unwrap_or_default()[0].1;
    assert_eq!([one(), one(), one(), one()], [0, 1, 2, 0]);
}
