//! Functions under `#[greenroom::main]` and `#[greenroom::test]`.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use greenroom::prelude::*;
use greenroom::{Handle, runtime};

#[derive(Default)]
struct Counter {
    n: u64,
}

#[actor]
impl Counter {
    pub(crate) fn add(&mut self, by: u64) -> u64 {
        self.n += by;
        self.n
    }

    pub(crate) fn fail(&self) {
        panic!("a counter that fails")
    }
}

#[greenroom::test]
async fn a_test_runs_on_the_only_shard_of_its_system() {
    let system = Handle::current().expect("on a shard");
    assert_eq!(system.shard_count(), 1);
    // What is not `Send` may live across an await.
    let here = Rc::new(Cell::new(1));
    let counter = greenroom::spawn(Counter::default());
    here.set(counter.add(4).await.unwrap());
    assert_eq!(here.get(), 4);
    runtime::time::sleep(Duration::from_millis(1)).await;
}

#[greenroom::test(shards = 3)]
async fn a_test_may_have_several_shards(system: Handle) -> Result<(), greenroom::Error> {
    assert_eq!(system.shard_count(), 3);
    for shard in 0..3 {
        let counter = system.spawn_on(shard, Counter::default).await?;
        assert_eq!(counter.add(2).await?, 2);
    }
    Ok(())
}

#[greenroom::test(shards = 1, backend = epoll)]
async fn a_test_may_choose_its_backend() -> Result<(), Box<dyn std::error::Error>> {
    let counter = greenroom::spawn(Counter::default());
    assert_eq!(counter.add(1).await?, 1);
    Ok(())
}

#[greenroom::test]
#[should_panic(expected = "this is the body of the test")]
async fn a_panic_of_the_body_is_the_panic_of_the_test() {
    runtime::yield_now().await;
    panic!("this is the body of the test");
}

#[greenroom::test]
async fn a_panic_of_an_actor_is_not_the_panic_of_the_test() {
    let counter = greenroom::spawn(Counter::default());
    assert!(counter.fail().await.unwrap_err().panic().is_some());
}

/// What the attribute makes of a function is one that any code can call.
mod called {
    use super::*;

    pub(super) static BEGUN: AtomicUsize = AtomicUsize::new(0);

    struct Closing(&'static AtomicUsize);

    #[actor]
    impl Closing {
        pub(crate) fn touch(&self) {}

        #[on(stopping)]
        async fn close(&mut self) {
            runtime::yield_now().await;
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) static CLOSED: AtomicUsize = AtomicUsize::new(0);

    #[greenroom::main(shards = 2)]
    pub(super) async fn main() -> Result<(), String> {
        BEGUN.fetch_add(1, Ordering::Relaxed);
        let system = Handle::current().ok_or("no shard")?;
        for shard in [0, 1, 1] {
            let closing = system.spawn_on(shard, || Closing(&CLOSED)).await;
            closing
                .map_err(|error| error.to_string())?
                .touch()
                .await
                .map_err(|error| error.to_string())?;
        }
        Err(String::from("printed, and the code of the process"))
    }
}

#[test]
fn main_reports_an_error_and_lets_actors_stop() {
    let code = called::main();
    assert_eq!(called::BEGUN.load(Ordering::Relaxed), 1);
    assert_eq!(called::CLOSED.load(Ordering::Relaxed), 3);
    assert_eq!(
        format!("{code:?}"),
        format!("{:?}", std::process::ExitCode::FAILURE)
    );
}
