//! A story told again and again, with another misfortune each time.

mod mishap;
mod pace;
mod stage;

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Write};
use std::ops::Range;

pub use self::mishap::Faults;
use self::mishap::Mishap;
use self::pace::Pace;
use self::stage::Told;
use crate::engine::{Engine, Outlast};

/// Tells a story many times on several processes that share one store, each time with faults drawn from a seed: processes
/// crash and come back, freeze past their lease, run on clocks that are wrong, lose wakes and replies, are cut off from the
/// store or find its disk full; the store's clock jumps; and who goes first is a matter of chance. Every time the story must
/// end as it does without faults.
///
/// Where [`super::crash_everywhere`] tries every single crash of one engine, this tries some of everything together. All of
/// it happens in virtual time, on one thread, and in the same way whenever the same seed is used.
///
/// `register` registers the workflows, for each process. The story's client talks through an engine of its own, which drives
/// nothing and to which nothing happens. It starts runs with fixed ids, waits for results, and returns what must always be
/// the same, or none if it could not go on.
///
/// ```
/// use outlast::testing::Simulation;
/// use outlast::{Ctx, Engine};
///
/// async fn double(ctx: Ctx, n: u32) -> outlast::Result<u32> {
///     ctx.sleep(std::time::Duration::from_secs(5)).await?;
///     ctx.step("double", async |_| Ok(n * 2)).await
/// }
///
/// let simulated = Simulation::new(|engine| engine.workflow("double", double))
///     .seeds(0..20)
///     .play(async |engine: Engine| {
///         let run = engine.start("double", &21).id("a").await.ok()?;
///         run.result::<u32>().await.ok()
///     });
/// assert_eq!(simulated.seeds, 20);
/// ```
#[must_use = "nothing happens until it is played"]
pub struct Simulation<R> {
    register: R,
    seeds: Range<u64>,
    processes: usize,
    faults: Faults,
}

/// What a [`Simulation`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simulated {
    /// How many seeds were played.
    pub seeds: u64,
    /// How often each kind of fault happened.
    pub faults: BTreeMap<&'static str, u64>,
}

impl<R: Fn(Outlast) -> Outlast> Simulation<R> {
    /// Of workflows, with 100 seeds, two processes and every kind of fault.
    pub fn new(register: R) -> Simulation<R> {
        Simulation { register, seeds: 0..100, processes: 2, faults: Faults::all() }
    }

    /// Which seeds are played.
    ///
    /// # Panics
    ///
    /// If there are none: a simulation that plays nothing finds nothing.
    pub fn seeds(self, seeds: Range<u64>) -> Simulation<R> {
        assert!(
            !seeds.is_empty(),
            "nothing would be played: there are no seeds in {seeds:?}; use at least one, like 0..100"
        );
        Simulation { seeds, ..self }
    }

    /// Only one seed is played: one that failed.
    pub fn seed(self, seed: u64) -> Simulation<R> {
        self.seeds(seed..seed.saturating_add(1))
    }

    /// How many processes drive runs; at least one.
    pub fn processes(self, processes: usize) -> Simulation<R> {
        Simulation { processes: processes.max(1), ..self }
    }

    /// What may happen.
    pub fn faults(self, faults: Faults) -> Simulation<R> {
        Simulation { faults, ..self }
    }

    /// Plays the story.
    ///
    /// # Panics
    ///
    /// If the story ends in another way than without faults. The message names the seed, what happened, in order and
    /// without what was not needed for it, and how to repeat it.
    pub fn play<T: PartialEq + Debug>(self, client: impl AsyncFn(Engine) -> Option<T>) -> Simulated {
        self.play_or(client, |_| false)
    }

    /// Plays a story that may end in several ways: faults take time, and so may change who wins a race. It must end as it
    /// does without faults, or in a way that `accept` accepts.
    ///
    /// # Panics
    ///
    /// If the story ends in a way that is neither.
    pub fn play_or<T: PartialEq + Debug>(
        self,
        client: impl AsyncFn(Engine) -> Option<T>,
        accept: impl Fn(&T) -> bool,
    ) -> Simulated {
        let (calm, pace) = self.calm(&client);
        let right = |told: &Told<T>| told.ended == calm.ended || told.ended.as_ref().is_some_and(&accept);
        let mut simulated = Simulated { seeds: 0, faults: BTreeMap::new() };
        for seed in self.seeds.clone() {
            let mishaps = self.faults.draw(seed, self.processes, &pace);
            let told = self.tell(seed, &mishaps, &pace, &client);
            if !right(&told) {
                self.fail(seed, mishaps, &pace, &client, right, &calm);
            }
            simulated.seeds += 1;
            told.kinds().for_each(|(kind, times)| *simulated.faults.entry(kind).or_default() += times);
        }
        simulated
    }

    /// The story without faults, and how long things take in it.
    fn calm<T>(&self, client: &impl AsyncFn(Engine) -> Option<T>) -> (Told<T>, Pace) {
        let pace = Pace::unknown();
        // Always the same one, whichever seeds are played: one process, which forgets nothing.
        let told = stage::tell(0, 1, &[], &pace, &self.register, client);
        assert!(told.ended.is_some(), "the story must end without any fault first; it does not{}", told.left());
        let pace = Pace::of(&told.moments);
        (told, pace)
    }

    fn tell<T>(
        &self,
        seed: u64,
        mishaps: &[Mishap],
        pace: &Pace,
        client: &impl AsyncFn(Engine) -> Option<T>,
    ) -> Told<T> {
        let _named = Named { seed };
        stage::tell(seed, self.processes, mishaps, pace, &self.register, client)
    }

    /// Leaves out what is not needed for the failure, and says what is.
    fn fail<T: Debug>(
        &self,
        seed: u64,
        mut mishaps: Vec<Mishap>,
        pace: &Pace,
        client: &impl AsyncFn(Engine) -> Option<T>,
        right: impl Fn(&Told<T>) -> bool,
        calm: &Told<T>,
    ) -> ! {
        let drawn = mishaps.len();
        let mut at = 0;
        while at < mishaps.len() {
            let mut fewer = mishaps.clone();
            fewer.remove(at);
            if right(&self.tell(seed, &fewer, pace, client)) {
                at += 1;
            } else {
                mishaps = fewer;
                at = 0;
            }
        }
        let told = self.tell(seed, &mishaps, pace, client);
        let mut text = format!(
            "the story ends in another way with seed {seed}\nwithout faults: {:?}\n    with these: {:?}{}\n",
            calm.ended,
            told.ended,
            told.left()
        );
        for mishap in &mishaps {
            let _ = writeln!(text, "  {mishap}");
        }
        let _ = writeln!(text, "  {}", stage::fate(seed));
        if drawn > 0 {
            let _ = writeln!(text, "({} of the {drawn} faults of this seed are enough for it)", mishaps.len());
        }
        panic!("{text}to repeat it: .seed({seed})");
    }
}

impl<R> fmt::Debug for Simulation<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Simulation { seeds, processes, faults, register: _ } = self;
        f.debug_struct("Simulation")
            .field("seeds", seeds)
            .field("processes", processes)
            .field("faults", faults)
            .finish_non_exhaustive()
    }
}

/// Names the seed if the story itself panics.
struct Named {
    seed: u64,
}

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("this happened with seed {}; to repeat it: .seed({})", self.seed, self.seed);
        }
    }
}
