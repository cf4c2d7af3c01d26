//! Panics of the author's code become failures, with the place where they happened.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;

use futures_util::future::BoxFuture;
use outlast_core::failure::{Failure, code};

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs the author's code. What is left behind by a panic is never looked at again, only dropped.
pub(super) fn guard<R>(who: &str, run: impl FnOnce() -> R) -> Result<R, Failure> {
    install_hook();
    let outer = GUARDED.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(run));
    GUARDED.set(outer);
    outcome.map_err(|payload| {
        let place = PLACE.take().map(|place| format!(" at {place}")).unwrap_or_default();
        Failure::new(code::PANIC, format!("{who} panicked{place}: {}", text(&*payload)))
    })
}

/// Makes and polls the author's future; a panic is its error.
pub(crate) async fn guarded<T>(
    who: &str,
    make: impl FnOnce() -> BoxFuture<'static, crate::Result<T>>,
) -> crate::Result<T> {
    let mut future = guard(who, make)?;
    std::future::poll_fn(move |cx| match guard(who, || future.as_mut().poll(cx)) {
        Ok(polled) => polled,
        Err(panic) => std::task::Poll::Ready(Err(panic.into())),
    })
    .await
}

/// The place of a panic is known to hooks only. This one notes it and leaves the rest to the hook before it.
fn install_hook() {
    static INSTALLED: Once = Once::new();
    // Hooks cannot be changed while this thread unwinds.
    if std::thread::panicking() {
        return;
    }
    INSTALLED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            note_place(info);
            before(info);
        }));
    });
}

fn note_place(info: &PanicHookInfo<'_>) {
    // The thread may be ending, and then there is nobody to tell.
    if GUARDED.try_with(Cell::get).unwrap_or(false) {
        let place = info.location().map(|at| format!("{}:{}", at.file(), at.line()));
        let _ = PLACE.try_with(|noted| noted.replace(place));
    }
}

fn text(payload: &(dyn Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "no message"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_told_with_its_place_and_text() {
        let line = line!() + 1;
        let failure = guard("a body", || panic!("{} lemons", 3)).unwrap_err();
        assert_eq!(failure.code, code::PANIC);
        assert_eq!(failure.message, format!("a body panicked at {}:{line}: 3 lemons", file!()));
        assert!(!failure.permanent);
    }

    #[test]
    fn a_panic_without_text_is_told_too() {
        let failure = guard("a body", || std::panic::panic_any(7)).unwrap_err();
        assert!(failure.message.ends_with(": no message"), "{failure}");
    }
}
