//! Waiting for whichever of several futures is ready first.

use crate::shard::context;

/// Waits for the first of up to eight futures that is ready, and runs what stands beside it.
///
/// Each branch is `pattern = future => expression`, and the pattern takes whatever the future returns. All futures are
/// made, then polled; when one is ready the others are dropped, and only then its expression runs. So it may use what the
/// futures borrowed, and `?`, `break` and `return` in it act where the macro stands.
///
/// Polling begins at a branch drawn by chance, so that of two that are always ready neither is starved. With `biased;` in
/// front it always begins at the first.
///
/// # Cancel safety
/// Futures that lose are dropped. In a loop, use futures that lose nothing by that: their documentation says so under this
/// heading. A future that must go on is kept outside and named as `&mut future`.
///
/// # Examples
/// ```
/// use greenroom_runtime::{select, spawn, sync::mpsc};
/// # let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let (words, mut word) = mpsc::channel(4);
///     let (numbers, mut number) = mpsc::channel(4);
///     spawn(async move {
///         words.send("one").await.unwrap();
///         numbers.send(2).await.unwrap();
///     })
///     .detach();
///     let mut heard = Vec::new();
///     while heard.len() < 2 {
///         select! {
///             found = word.recv() => heard.extend(found.map(str::to_owned)),
///             found = number.recv() => {
///                 let Some(number) = found else { break };
///                 heard.push(number.to_string());
///             }
///         }
///     }
/// });
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[macro_export]
macro_rules! select {
    (biased; $($branches:tt)+) => {
        $crate::__select!(@parse biased [] [A B C D E F G H] $($branches)+)
    };
    ($($branches:tt)+) => {
        $crate::__select!(@parse random [] [A B C D E F G H] $($branches)+)
    };
}

/// The steps of [`select!`]: takes the branches apart, gives each a name, and puts them together.
#[doc(hidden)]
#[macro_export]
macro_rules! __select {
    (@parse $order:ident [$($done:tt)*] [$name:ident $($names:ident)*]
        $pattern:pat = $future:expr => $body:block $(, $($rest:tt)*)?
    ) => {
        $crate::__select!(
            @parse $order [$($done)* ($name, $pattern, $future, $body)] [$($names)*] $($($rest)*)?
        )
    };
    (@parse $order:ident [$($done:tt)*] [$name:ident $($names:ident)*]
        $pattern:pat = $future:expr => $body:block $($rest:tt)+
    ) => {
        $crate::__select!(
            @parse $order [$($done)* ($name, $pattern, $future, $body)] [$($names)*] $($rest)+
        )
    };
    (@parse $order:ident [$($done:tt)*] [$name:ident $($names:ident)*]
        $pattern:pat = $future:expr => $body:expr $(, $($rest:tt)*)?
    ) => {
        $crate::__select!(
            @parse $order [$($done)* ($name, $pattern, $future, $body)] [$($names)*] $($($rest)*)?
        )
    };
    (@parse $order:ident [$($done:tt)*] [] $($rest:tt)+) => {
        ::core::compile_error!("`select!` takes at most eight branches")
    };
    (@parse $order:ident [$(($name:ident, $pattern:pat, $future:expr, $body:expr))+] [$($names:ident)*]) => {{
        enum __Ready<$($name),+> {
            $($name($name)),+
        }
        let ready = {
            $(let mut $name = ::core::pin::pin!(::core::future::IntoFuture::into_future($future));)+
            let first = $crate::__select!(@first $order [$($name)+]);
            ::core::future::poll_fn(|cx| {
                // From the first one to the last, then those before it.
                for is_second_round in [false, true] {
                    let mut index = 0_usize;
                    $(
                        if (index < first) == is_second_round
                            && let ::core::task::Poll::Ready(output) =
                                ::core::future::Future::poll($name.as_mut(), cx)
                        {
                            return ::core::task::Poll::Ready(__Ready::$name(output));
                        }
                        index += 1;
                    )+
                    let _: usize = index;
                }
                ::core::task::Poll::Pending
            })
            .await
        };
        match ready {
            $(__Ready::$name($pattern) => $body,)+
        }
    }};
    (@first biased [$($name:ident)+]) => { 0_usize };
    (@first random [$($name:ident)+]) => {
        $crate::task::first_branch([$(::core::stringify!($name)),+].len())
    };
}

/// The branch at which a `select!` of so many begins.
#[doc(hidden)]
#[must_use]
pub fn first_branch(count: usize) -> usize {
    // On a thread that is no shard there is no generator, and no task to be fair to.
    let drawn = context::with(|shard| shard.rng().next() % count.max(1) as u64);
    usize::try_from(drawn.unwrap_or(0)).unwrap_or(0)
}
