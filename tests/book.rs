//! The Rust blocks of the README and of the book, as doc tests: one module for each page.

macro_rules! pages {
    ($($name:ident $path:literal)*) => {
        $(
            #[doc = include_str!($path)]
            mod $name {}
        )*
    };
}

pages! {
    readme "../README.md"
    introduction "../book/src/introduction.md"
    first_actor "../book/src/tutorial/first-actor.md"
    defining_actors "../book/src/tutorial/defining-actors.md"
    asking_and_telling "../book/src/tutorial/asking-and-telling.md"
    failure_and_stopping "../book/src/tutorial/failure-and-stopping.md"
    supervision "../book/src/tutorial/supervision.md"
    sharding "../book/src/tutorial/sharding.md"
    server "../book/src/tutorial/server.md"
    bulk "../book/src/how-to/bulk.md"
    io_uring_refused "../book/src/how-to/io-uring-refused.md"
    actors_by_key "../book/src/how-to/actors-by-key.md"
    groups_and_topics "../book/src/how-to/groups-and-topics.md"
    names "../book/src/how-to/names.md"
    overload "../book/src/how-to/overload.md"
    time_and_streams "../book/src/how-to/time-and-streams.md"
    retries "../book/src/how-to/retries.md"
    in_your_editor "../book/src/how-to/in-your-editor.md"
    see_inside "../book/src/how-to/see-inside.md"
    signals_and_shutdown "../book/src/how-to/signals-and-shutdown.md"
}
