//! The subscriber of these tests. It notes what it hears, and misbehaves on threads of certain names.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::{Debug, Write};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, Once};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use greenroom_runtime::{current_shard, spawn};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

const LIMIT: Duration = Duration::from_secs(20);
/// How often it meddles with each kind of call.
const MEDDLES_MAX: usize = 30;

#[derive(Clone, Debug)]
pub(crate) struct Note {
    pub(crate) thread: String,
    pub(crate) what: What,
    span: u64,
    fields: BTreeMap<&'static str, String>,
    meta: Option<&'static Metadata<'static>>,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    /// Whether it is a root.
    New(bool),
    Enter(u64),
    Exit(u64),
    /// A span, and the one it follows from.
    Follows(u64, u64),
    Close,
    Event,
}

impl Note {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    pub(crate) fn target(&self) -> &str {
        self.meta.map_or("", Metadata::target)
    }

    pub(crate) fn level(&self) -> &str {
        self.meta.map_or("", |meta| meta.level().as_str())
    }

    /// The span it is about; of what only names two of them, none.
    pub(crate) fn span(&self) -> Option<u64> {
        (!matches!(self.what, What::Event | What::Follows(..))).then_some(self.span)
    }

    pub(crate) fn verb(&self) -> &'static str {
        match self.what {
            What::New(_) => "new",
            What::Enter(_) => "enter",
            What::Exit(_) => "exit",
            What::Follows(..) => "follows",
            What::Close => "close",
            What::Event => "event",
        }
    }
}

static NOTES: Mutex<Vec<Note>> = Mutex::new(Vec::new());
static NEWS: Condvar = Condvar::new();
static NEXT: AtomicU64 = AtomicU64::new(1);
static MEDDLED: Mutex<BTreeMap<&'static str, usize>> = Mutex::new(BTreeMap::new());
static AT_REST: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);
pub(crate) static MEDDLING_FAILED: AtomicUsize = AtomicUsize::new(0);
pub(crate) static THROWN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static MEDDLES: Cell<bool> = const { Cell::new(false) };
    static WOKEN: RefCell<Option<Waker>> = const { RefCell::new(None) };
}

fn lock() -> MutexGuard<'static, Vec<Note>> {
    NOTES.lock().unwrap()
}

/// Makes the recorder that of the process.
pub(crate) fn recorded() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tracing::subscriber::set_global_default(Recorder).expect("there is no other");
    });
}

/// What was noted on threads whose name begins so.
pub(crate) fn notes_of(name: &str) -> Vec<Note> {
    let is_its = |note: &&Note| note.thread.starts_with(name);
    lock().iter().filter(is_its).cloned().collect()
}

/// Blocks until a note comes in.
pub(crate) fn wait_for(is_it: impl Fn(&Note) -> bool) {
    let notes = lock();
    let missing = |notes: &mut Vec<Note>| !notes.iter().any(&is_it);
    let (_notes, waited) = NEWS.wait_timeout_while(notes, LIMIT, missing).unwrap();
    assert!(!waited.timed_out(), "nothing was heard");
}

/// How often it meddled with each kind of call.
pub(crate) fn meddled() -> Vec<(&'static str, usize)> {
    let meddled = MEDDLED.lock().unwrap();
    ["new", "follows", "enter", "exit", "close", "event"]
        .map(|verb| (verb, meddled.get(verb).copied().unwrap_or(0)))
        .to_vec()
}

/// Runs a function in a task that is spawned when a shard named "rester" tells that it parks.
pub(crate) fn at_next_rest(work: impl FnOnce() + Send + 'static) {
    *AT_REST.lock().unwrap() = Some(Box::new(work));
}

/// Ends when the recorder has woken it a few times.
pub(crate) async fn woken_often() {
    let mut polls = 0;
    poll_fn(|cx| {
        WOKEN.set(Some(cx.waker().clone()));
        polls += 1;
        if polls > 5 {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

struct Recorder;

impl Recorder {
    fn note(&self, mut note: Note) {
        note.thread = thread::current().name().unwrap_or_default().to_owned();
        let (verb, thread) = (note.verb(), note.thread.clone());
        let is_rest = note.field("message") == Some("parking");
        lock().push(note);
        NEWS.notify_all();
        match thread.split('-').next() {
            Some("meddler") => meddle(verb),
            Some("thrower") if current_shard().is_some() => {
                // Every other span is made, so that there are more calls to throw from.
                let earlier = THROWN.fetch_add(1, Ordering::Relaxed);
                if verb != "new" || earlier.is_multiple_of(2) {
                    panic!("a subscriber's own panic");
                }
            }
            Some("rester") if is_rest => {
                let work = AT_REST.lock().unwrap().take();
                if let Some(work) = work {
                    spawn(async move { work() }).detach();
                }
            }
            _ => {}
        }
    }
}

/// Does what would find a structure of the shard borrowed.
fn meddle(verb: &'static str) {
    if current_shard().is_none() || MEDDLES.replace(true) {
        return;
    }
    let times = {
        let mut meddled = MEDDLED.lock().unwrap();
        let times = meddled.entry(verb).or_default();
        *times += 1;
        *times
    };
    if times <= MEDDLES_MAX {
        let meddled = catch_unwind(AssertUnwindSafe(|| {
            spawn(async {}).detach();
            spawn(std::future::pending::<()>()).abort();
            if let Some(waker) = WOKEN.take() {
                waker.wake();
            }
        }));
        if meddled.is_err() {
            MEDDLING_FAILED.fetch_add(1, Ordering::Relaxed);
        }
    }
    MEDDLES.set(false);
}

fn bare(what: What, span: u64) -> Note {
    Note {
        thread: String::new(),
        what,
        span,
        fields: BTreeMap::new(),
        meta: None,
    }
}

impl Visit for Note {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let text = self.fields.entry(field.name()).or_default();
        write!(text, "{value:?}").expect("a string takes everything");
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("greenroom::")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut note = bare(What::New(span.is_root()), id);
        note.meta = Some(span.metadata());
        span.record(&mut note);
        self.note(note);
        Id::from_u64(id)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        let (span, follows) = (span.into_u64(), follows.into_u64());
        self.note(bare(What::Follows(span, follows), span));
    }

    fn event(&self, event: &Event<'_>) {
        let mut note = bare(What::Event, 0);
        note.meta = Some(event.metadata());
        event.record(&mut note);
        self.note(note);
    }

    fn enter(&self, span: &Id) {
        self.note(bare(What::Enter(span.into_u64()), span.into_u64()));
    }

    fn exit(&self, span: &Id) {
        self.note(bare(What::Exit(span.into_u64()), span.into_u64()));
    }

    fn try_close(&self, id: Id) -> bool {
        self.note(bare(What::Close, id.into_u64()));
        true
    }
}
