use std::sync::atomic::AtomicU64;

use super::*;

/// A host whose clock is set by hand, in microseconds.
#[derive(Default)]
struct ByHand(AtomicU64);

impl Host for ByHand {
    fn wall(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }

    fn elapsed(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Relaxed))
    }

    fn sleep_until(&self, _: Duration) -> SendFuture {
        Box::pin(std::future::pending())
    }

    fn spawn(&self, _: SendFuture) {}

    fn spawn_driver(&self, _: String, _: MakeDriver) {}

    fn random(&self) -> u128 {
        0
    }

    fn runtime(&self) -> Option<Handle> {
        None
    }
}

struct Scene {
    host: Arc<ByHand>,
    time: Time,
}

impl Scene {
    fn new() -> Scene {
        let host = Arc::new(ByHand::default());
        Scene { time: Time::new(host.clone()), host }
    }

    fn at(&self, micros: u64) -> &Scene {
        self.host.0.store(micros, Ordering::Relaxed);
        self
    }

    /// Asks now, and is told this after so many microseconds.
    fn asks(&self, told: i64, after: u64) -> &Scene {
        let asked = self.time.asked();
        self.host.0.fetch_add(after, Ordering::Relaxed);
        self.time.observe(asked, Timestamp::from_millis(told));
        self
    }

    fn now(&self) -> i64 {
        self.time.now().as_millis()
    }
}

#[test]
fn engine_time_is_never_behind_what_the_store_said() {
    let scene = Scene::new();
    for micros in [10_300, 10_500, 11_001, 11_999, 12_000] {
        scene.at(micros).asks(500, 0);
        assert!(scene.now() >= 500, "{} at {micros}", scene.now());
    }
    scene.at(20_700).time.has_passed(Timestamp::from_millis(600));
    assert_eq!(scene.now(), 600);
    assert_eq!(scene.at(21_700).now(), 601);
}

#[test]
fn a_reply_that_comes_late_does_not_set_it_back() {
    let scene = Scene::new();
    assert_eq!(scene.asks(1_000, 0).now(), 1_000);
    // The store's clock showed 1,010 when it was asked, and the disk took its time.
    assert_eq!(scene.at(10_000).asks(1_010, 50_000).now(), 1_060);
    // It showed 1,070, in a millisecond that was nearly over.
    assert_eq!(scene.at(70_900).asks(1_070, 0).now(), 1_070);
}

#[test]
fn a_clock_that_is_set_back_or_forward_is_followed() {
    let scene = Scene::new();
    assert_eq!(scene.asks(10_000, 0).now(), 10_000);
    assert_eq!(scene.at(5_000).asks(7_000, 100).now(), 7_000);
    assert_eq!(scene.at(6_000).asks(50_000, 100).now(), 50_000);
    assert_eq!(scene.at(7_100).now(), 50_001);
}

#[test]
fn what_was_recorded_long_ago_says_nothing_about_now() {
    let scene = Scene::new();
    scene.asks(10_000, 0).time.has_passed(Timestamp::from_millis(3_000));
    assert_eq!(scene.now(), 10_000);
    assert_eq!(scene.time.passed(), Timestamp::from_millis(10_000));
}

#[test]
fn at_the_instant_of_a_deadline_the_store_has_certainly_reached_it() {
    let scene = Scene::new();
    scene.at(10_300).asks(500, 0);
    let instant = scene.time.instant(Timestamp::from_millis(505));
    assert_eq!(instant, Duration::from_micros(15_300));
    scene.at(15_300);
    assert_eq!(scene.now(), 505);
}
