//! The subscriber of these tests. It notes what it hears, and misbehaves on threads of certain names.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::{Debug, Write};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, Once};
use std::thread;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_core::span::Current;

/// How often it meddles.
const MEDDLES_MAX: usize = 3000;

/// A span that is about a message, as it was made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Made {
    pub(crate) thread: String,
    pub(crate) is_root: bool,
    pub(crate) fields: BTreeMap<&'static str, String>,
    /// What happened to it, in order.
    pub(crate) story: String,
    pub(crate) follows: Vec<u64>,
}

impl Made {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }
}

impl Visit for Made {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let text = self.fields.entry(field.name()).or_default();
        write!(text, "{value:?}").expect("a string takes everything");
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }
}

#[derive(Debug, Default)]
struct Heard {
    spans: BTreeMap<u64, Made>,
    /// Spans of messages that are open, by the first word of their thread's name, and the most there ever were.
    open: BTreeMap<String, (usize, usize)>,
    /// The most spans that a thread was in at a time, in the same way.
    deepest: BTreeMap<String, usize>,
}

static HEARD: Mutex<Heard> = Mutex::new(Heard {
    spans: BTreeMap::new(),
    open: BTreeMap::new(),
    deepest: BTreeMap::new(),
});
static NEXT: AtomicU64 = AtomicU64::new(1);
static MEDDLING: Mutex<Option<Box<dyn Fn() + Send>>> = Mutex::new(None);
pub(crate) static MEDDLED: AtomicUsize = AtomicUsize::new(0);
pub(crate) static MEDDLING_FAILED: AtomicUsize = AtomicUsize::new(0);
pub(crate) static THROWN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static INSIDE: RefCell<Vec<(u64, &'static Metadata<'static>)>> = const { RefCell::new(Vec::new()) };
    static MEDDLES: Cell<bool> = const { Cell::new(false) };
}

fn heard() -> MutexGuard<'static, Heard> {
    HEARD.lock().unwrap()
}

/// Makes the recorder that of the process.
pub(crate) fn recorded() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tracing::subscriber::set_global_default(Recorder).expect("there is no other");
    });
}

/// The spans that were made on threads whose name begins with this word.
pub(crate) fn spans_of(word: &str) -> BTreeMap<u64, Made> {
    let heard = heard();
    let its = heard
        .spans
        .iter()
        .filter(|(_, made)| first_word(&made.thread) == word);
    its.map(|(id, made)| (*id, made.clone())).collect()
}

/// The most spans that were open, and the most that a thread was in, at a time.
pub(crate) fn most_of(word: &str) -> (usize, usize) {
    let heard = heard();
    (heard.open[word].1, heard.deepest[word])
}

/// What a subscriber does on shards named "meddler", each time that it is called.
pub(crate) fn meddle_with(work: impl Fn() + Send + 'static) {
    *MEDDLING.lock().unwrap() = Some(Box::new(work));
}

fn first_word(thread: &str) -> &str {
    thread.split('-').next().unwrap_or_default()
}

fn thread_name() -> String {
    thread::current().name().unwrap_or_default().to_owned()
}

/// Misbehaves, where that is wanted.
fn called() {
    if greenroom::runtime::current_shard().is_none() {
        return;
    }
    match first_word(&thread_name()) {
        "thrower" => {
            THROWN.fetch_add(1, Ordering::Relaxed);
            panic!("a subscriber's own panic");
        }
        "meddler" if !MEDDLES.replace(true) => {
            // What it sends is heard of in turn, so there is an end to it.
            let is_enough = MEDDLED.fetch_add(1, Ordering::Relaxed) > MEDDLES_MAX;
            let meddling = MEDDLING.lock().unwrap();
            if let Some(meddle) = &*meddling
                && !is_enough
                && catch_unwind(AssertUnwindSafe(meddle)).is_err()
            {
                MEDDLING_FAILED.fetch_add(1, Ordering::Relaxed);
            }
            MEDDLES.set(false);
        }
        _ => {}
    }
}

fn note(span: &Id, verb: &str) {
    if let Some(made) = heard().spans.get_mut(&span.into_u64()) {
        made.story = format!("{} {verb}", made.story).trim().to_owned();
    }
}

struct Recorder;

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Spans that are about messages, and those of the tests themselves.
        ["greenroom::message", "tracing"]
            .iter()
            .any(|target| metadata.target().starts_with(target))
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut made = Made {
            thread: thread_name(),
            is_root: span.is_root(),
            ..Made::default()
        };
        span.record(&mut made);
        {
            let mut heard = heard();
            let (open, most) = heard
                .open
                .entry(first_word(&made.thread).to_owned())
                .or_default();
            *open += 1;
            *most = (*open).max(*most);
            heard.spans.insert(id, made);
        }
        called();
        METADATA.with_borrow_mut(|known| known.insert(id, span.metadata()));
        Id::from_u64(id)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        if let Some(made) = heard().spans.get_mut(&span.into_u64()) {
            made.follows.push(follows.into_u64());
        }
        called();
    }

    fn event(&self, _event: &Event<'_>) {}

    fn enter(&self, span: &Id) {
        note(span, "enter");
        let depth = INSIDE.with_borrow_mut(|inside| {
            let metadata = METADATA.with_borrow(|known| known.get(&span.into_u64()).copied());
            inside.extend(metadata.map(|metadata| (span.into_u64(), metadata)));
            inside.len()
        });
        {
            let mut heard = heard();
            let deepest = heard
                .deepest
                .entry(first_word(&thread_name()).to_owned())
                .or_default();
            *deepest = depth.max(*deepest);
        }
        called();
    }

    fn exit(&self, span: &Id) {
        note(span, "exit");
        INSIDE.with_borrow_mut(|inside| {
            let left = inside.pop();
            assert_eq!(
                left.map(|(id, _)| id),
                Some(span.into_u64()),
                "left in order"
            );
        });
        called();
    }

    fn try_close(&self, span: Id) -> bool {
        note(&span, "close");
        METADATA.with_borrow_mut(|known| known.remove(&span.into_u64()));
        if let Some((open, _)) = heard().open.get_mut(first_word(&thread_name())) {
            *open -= 1;
        }
        called();
        true
    }

    fn current_span(&self) -> Current {
        called();
        INSIDE.with_borrow(|inside| match inside.last() {
            Some((id, metadata)) => Current::new(Id::from_u64(*id), metadata),
            None => Current::none(),
        })
    }
}

thread_local! {
    static METADATA: RefCell<BTreeMap<u64, &'static Metadata<'static>>> = const { RefCell::new(BTreeMap::new()) };
}

/// The same, for the threads that make it their own. It does not know in which span it is.
struct Plain;

/// Makes it that of the calling thread.
pub(crate) fn be_plain() {
    let _until_the_end = ManuallyDrop::new(tracing::subscriber::set_default(Plain));
}

impl Subscriber for Plain {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        Recorder.enabled(metadata)
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        Recorder.new_span(span)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        Recorder.record_follows_from(span, follows);
    }

    fn event(&self, _event: &Event<'_>) {}

    fn enter(&self, span: &Id) {
        Recorder.enter(span);
    }

    fn exit(&self, span: &Id) {
        Recorder.exit(span);
    }

    fn try_close(&self, span: Id) -> bool {
        Recorder.try_close(span)
    }
}
