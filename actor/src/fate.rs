//! Why values of an actor are being dropped: read by replies that are dropped unanswered.
//!
//! A [`crate::Reply`] knows its asker and nothing else, so that a message stays small. When it is dropped without an
//! answer the reason is found here: a panic that unwinds through it, or the fate that whoever drops it has announced.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic;
use std::sync::Once;

use greenroom_runtime::task::{discard_payload, panic_text};

/// What is happening to the messages that are dropped right now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// They were never handled: their actor has stopped.
    Stopped,
    /// They were never handled: their mailbox was full.
    Overflowed,
    /// They were being handled when their actor was killed.
    Killed,
    /// They were never handled: their actor did not start. The cause is noted.
    NotStarted,
}

thread_local! {
    static FATE: Cell<Option<Fate>> = const { Cell::new(None) };
    static CAUSE: RefCell<Option<Box<str>>> = const { RefCell::new(None) };
    static LAST_PANIC: RefCell<Option<PanicReport>> = const { RefCell::new(None) };
}

/// The text of a panic and where it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PanicReport {
    text: String,
    place: Option<String>,
}

impl PanicReport {
    /// What the panic said.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// File, line and column, unless the program has replaced the panic hook since the system started.
    #[must_use]
    pub fn place(&self) -> Option<&str> {
        self.place.as_deref()
    }

    pub(crate) fn unknown() -> Self {
        Self {
            text: "the text of the panic is not known: the panic hook was replaced".to_owned(),
            place: None,
        }
    }

    fn of_payload(payload: &(dyn Any + Send)) -> Self {
        Self {
            text: panic_text(payload).to_owned(),
            place: None,
        }
    }
}

impl fmt::Display for PanicReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{} (at {place})", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// Announces a fate for the time of `f`.
pub(crate) fn with<R>(fate: Fate, f: impl FnOnce() -> R) -> R {
    let _until_here = Announced {
        previous: set(Some(fate)),
    };
    f()
}

/// Announces, for the time of `f`, that an actor has ended: because it did not start, if there is a cause for that.
pub(crate) fn with_cause<R>(cause: Option<Box<str>>, f: impl FnOnce() -> R) -> R {
    let Some(cause) = cause else {
        return with(Fate::Stopped, f);
    };
    let previous = CAUSE.replace(Some(cause));
    let result = with(Fate::NotStarted, f);
    CAUSE.set(previous);
    result
}

/// Why an actor did not start, while that is the fate of what is dropped.
pub(crate) fn cause() -> Box<str> {
    CAUSE.with_borrow(|cause| cause.clone()).unwrap_or_default()
}

/// Puts the previous fate back.
struct Announced {
    previous: Option<Fate>,
}

impl Drop for Announced {
    fn drop(&mut self) {
        set(self.previous);
    }
}

/// Announces a fate until the next call; returns what was announced before.
pub(crate) fn set(fate: Option<Fate>) -> Option<Fate> {
    FATE.replace(fate)
}

pub(crate) fn current() -> Option<Fate> {
    FATE.get()
}

/// Whether a reply dropped now would hear of an end around it: an announced fate, or a panic that unwinds. A handler that
/// ran now would pass that end on to replies which have nothing to do with it.
#[inline]
pub(crate) fn is_decided() -> bool {
    current().is_some() || std::thread::panicking()
}

/// Begins to note panics on shards, in front of the hook that was there, which still runs.
pub(crate) fn watch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if greenroom_runtime::current_shard().is_some() {
                let mut report = PanicReport::of_payload(info.payload());
                report.place = info.location().map(ToString::to_string);
                // A panic while the last one is being read leaves that one in place.
                LAST_PANIC.with(|last| {
                    if let Ok(mut last) = last.try_borrow_mut() {
                        *last = Some(report);
                    }
                });
            }
            previous(info);
        }));
    });
}

/// The panic that is unwinding, or has just been caught, on this thread.
pub(crate) fn last_panic() -> Option<PanicReport> {
    LAST_PANIC.with(|last| last.try_borrow().ok().and_then(|last| last.clone()))
}

/// The report of a panic that was just caught, with its place if the hook noted it. Disposes of the payload.
pub(crate) fn report(payload: Box<dyn Any + Send>) -> PanicReport {
    let noted = note_panic(None);
    let report = noted.unwrap_or_else(|| PanicReport::of_payload(payload.as_ref()));
    discard_payload(payload);
    // If its drop panicked as well, that is no report of anything to come.
    note_panic(None);
    report
}

/// Notes another panic, or none, in the place of the one that has been dealt with; returns that one.
pub(crate) fn note_panic(report: Option<PanicReport>) -> Option<PanicReport> {
    LAST_PANIC.with(|last| {
        let mut last = last.try_borrow_mut().ok()?;
        std::mem::replace(&mut *last, report)
    })
}
