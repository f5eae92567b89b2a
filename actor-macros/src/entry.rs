//! `#[greenroom::main]` and `#[greenroom::test]`: a function whose body runs on a shard.
//!
//! The user's function stays as it is, inside of one of the same name that is no `async fn`: it
//! starts a system, runs the body on shard 0 and shuts the system down.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Expr, FnArg, LitStr, Path, ReturnType, Safety, Signature, Visibility};

use crate::errors::Errors;
use crate::hygiene::{self, Place};
use crate::{args, messages, types};

/// Which of the two attributes it is.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Entry {
    Main,
    Test,
}

impl Entry {
    fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Test => "test",
        }
    }
}

#[derive(Default)]
struct Options {
    shards: Option<Expr>,
    /// A variant of `Backend`.
    backend: Option<Ident>,
    /// How long actors have to stop when the function has returned.
    grace: Option<Expr>,
    krate: Option<Path>,
}

/// Every option, in the order in which texts list them.
const KNOWN: &args::Known = &args::Known {
    names: &["backend", "crate", "grace", "shards"],
    elsewhere: &[],
};

/// Every backend, as it is written and as the runtime calls it.
const BACKENDS: &[(&str, &str)] = &[
    ("auto", "Auto"),
    ("epoll", "Epoll"),
    ("io_uring", "IoUring"),
];

/// The function, with its body as it was written.
struct Function {
    attrs: Vec<Attribute>,
    vis: Visibility,
    sig: Signature,
    body: TokenStream,
}

/// The whole of both attributes.
pub(crate) fn expand(entry: Entry, args: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let options = options(args, &mut errors);
    let Ok(function) = function.parse2(item.clone()) else {
        let text = messages::entry_on_other_item(entry.name());
        errors.at(Span::call_site(), text);
        let mut tokens = item;
        tokens.extend(errors.into_tokens());
        return tokens;
    };
    let before = errors.count();
    check(entry, &function, &mut errors);
    let mut tokens = if errors.count() == before {
        wrapped(entry, &options, &function)
    } else {
        unwrapped(&function)
    };
    tokens.extend(errors.into_tokens());
    tokens
}

fn function(input: ParseStream<'_>) -> syn::Result<Function> {
    Ok(Function {
        attrs: input.call(Attribute::parse_outer)?,
        vis: input.parse()?,
        sig: input.parse()?,
        body: input.parse()?,
    })
}

fn options(tokens: TokenStream, errors: &mut Errors) -> Options {
    let mut options = Options::default();
    args::each_option(tokens, KNOWN, errors, |name, input, errors| match name {
        "shards" => options.shards = args::count(input, &messages::SHARDS_TEXTS, errors),
        "backend" => options.backend = backend(input, errors),
        "grace" => options.grace = grace(input, errors),
        _ => options.krate = args::krate(input, errors),
    });
    options
}

/// A name, also as a string: it is written so in the environment.
fn backend(input: ParseStream<'_>, errors: &mut Errors) -> Option<Ident> {
    let start = input.span();
    let (found, place) = if let Ok(text) = input.parse::<LitStr>() {
        (text.value(), text.span())
    } else if let Ok(name) = input.call(Ident::parse_any) {
        (name.unraw().to_string(), name.span())
    } else {
        errors.at(start, messages::BACKEND_NOT_A_NAME);
        return None;
    };
    let known = BACKENDS.iter().find(|(name, _)| *name == found);
    if let Some((_, variant)) = known {
        return Some(Ident::new(variant, hygiene::blamed_on(place)));
    }
    let names: Vec<&str> = BACKENDS.iter().map(|(name, _)| *name).collect();
    let nearest = hygiene::nearest(&found, &names);
    errors.at(place, messages::unknown_backend(&found, nearest, &names));
    None
}

fn grace(input: ParseStream<'_>, errors: &mut Errors) -> Option<Expr> {
    match input.parse::<Expr>() {
        Ok(grace) if matches!(args::ungrouped(&grace), Expr::Lit(_)) => {
            errors.on(grace, messages::GRACE_NOT_A_DURATION);
            None
        }
        Ok(grace) => Some(grace),
        Err(error) => {
            errors.push(error);
            None
        }
    }
}

fn check(entry: Entry, function: &Function, errors: &mut Errors) {
    let sig = &function.sig;
    if sig.asyncness.is_none() {
        errors.on(sig.fn_token, messages::entry_not_async(entry.name()));
    }
    if let Safety::Unsafe(token) = &sig.safety {
        errors.on(token, messages::ENTRY_QUALIFIER);
    }
    if let Some(token) = &sig.constness {
        errors.on(token, messages::ENTRY_QUALIFIER);
    }
    if let Some(abi) = &sig.abi {
        errors.on(abi, messages::ENTRY_QUALIFIER);
    }
    if !sig.generics.params.is_empty() {
        errors.on(&sig.generics.params, messages::ENTRY_GENERIC);
    }
    let mut inputs = sig.inputs.iter();
    match inputs.next() {
        Some(FnArg::Receiver(receiver)) => errors.on(receiver, messages::ENTRY_RECEIVER),
        Some(FnArg::Typed(typed)) if !types::is_spelled(&typed.ty, "Handle") => {
            errors.on(&typed.ty, messages::ENTRY_PARAMETER);
        }
        Some(FnArg::Typed(_)) | None => {}
    }
    for input in inputs {
        errors.on(input, messages::ENTRY_PARAMETER);
    }
    if entry == Entry::Main && sig.ident != "main" {
        errors.on(&sig.ident, messages::ENTRY_NOT_CALLED_MAIN);
    }
    for attr in &function.attrs {
        let is_test = attr
            .path()
            .segments
            .last()
            .is_some_and(|last| last.ident == "test");
        if entry == Entry::Test && is_test {
            errors.on(attr, messages::ENTRY_TEST_TWICE);
        }
    }
}

/// The user's function inside of the one that is called.
fn wrapped(entry: Entry, options: &Options, function: &Function) -> TokenStream {
    let Function {
        attrs,
        vis,
        sig,
        body,
    } = function;
    let name = &sig.ident;
    // Imported, so that a crate which is not there is missed once.
    let import = match &options.krate {
        Some(path) => quote_spanned!(hygiene::generated()=> use #path::__rt;),
        None => quote_spanned!(hygiene::generated()=> use ::greenroom::__rt;),
    };
    let output = match &sig.output {
        ReturnType::Type(_, ty) if !types::is_unit(ty) => Some(ty),
        _ => None,
    };
    let place = output.map_or_else(Place::nowhere, Place::of);
    let builder = builder(entry, options);
    let grace = match &options.grace {
        Some(grace) => grace.to_token_stream(),
        None => {
            let seconds: u64 = if entry == Entry::Main { 10 } else { 1 };
            quote_spanned!(hygiene::generated()=> __rt::core::time::Duration::from_secs(#seconds))
        }
    };
    let called = if sig.inputs.is_empty() {
        quote_spanned!(hygiene::generated()=> |_| #name())
    } else {
        name.to_token_stream()
    };
    // A type that is no outcome is reported where the user wrote it.
    let run = {
        let function = Ident::new(entry.name(), hygiene::generated());
        let path = quote_spanned!(hygiene::generated()=> __rt::entry::#function);
        let path = hygiene::moved_to(place.first, path);
        place.call(
            path,
            quote_spanned!(hygiene::generated()=> #builder, #grace, #called),
        )
    };
    // `#[should_panic]` wants a test that returns nothing; any other value is reported as a code.
    let is_reported = entry == Entry::Main || output.is_some();
    let returned =
        is_reported.then(|| quote_spanned!(hygiene::generated()=> -> ::std::process::ExitCode));
    let discarded = (!is_reported).then(|| quote_spanned!(hygiene::generated()=> let _ =));
    let end = (!is_reported).then(|| quote_spanned!(hygiene::generated()=> ;));
    let test = (entry == Entry::Test)
        .then(|| quote_spanned!(hygiene::generated()=> #[::core::prelude::v1::test]));
    quote_spanned! {hygiene::generated()=>
        #test
        #(#attrs)*
        #vis fn #name() #returned {
            #import
            #[allow(clippy::single_call_fn, clippy::unused_async)]
            #sig #body
            #discarded #run #end
        }
    }
}

fn builder(entry: Entry, options: &Options) -> TokenStream {
    let mut builder = quote_spanned!(hygiene::generated()=> __rt::entry::System::builder());
    match (&options.shards, entry) {
        (Some(shards), _) => {
            builder.extend(quote_spanned!(hygiene::generated()=> .shards(#shards)));
        }
        (None, Entry::Test) => builder.extend(quote_spanned!(hygiene::generated()=> .shards(1))),
        (None, Entry::Main) => {}
    }
    if entry == Entry::Test {
        // Tests run beside each other: all of their first shards would share one CPU.
        builder.extend(quote_spanned!(hygiene::generated()=> .pin(false)));
    }
    if let Some(backend) = &options.backend {
        builder.extend(quote_spanned! {hygiene::generated()=>
            .runtime(|runtime| runtime.backend(__rt::entry::Backend::#backend))
        });
    }
    builder
}

/// The user's function without the attribute, so that nothing but its mistake is reported: a `main`
/// must not be asynchronous, and must exist.
fn unwrapped(function: &Function) -> TokenStream {
    let Function {
        attrs,
        vis,
        sig,
        body,
    } = function;
    let name = &sig.ident;
    let unused = quote_spanned!(hygiene::generated()=> #[allow(dead_code, unused)]);
    if name != "main" {
        return quote_spanned!(hygiene::generated()=> #unused #(#attrs)* #vis #sig #body);
    }
    let mut sig = sig.clone();
    sig.ident = Ident::new("__main", name.span());
    quote_spanned!(hygiene::generated()=> #unused #(#attrs)* #vis #sig #body #vis fn #name() {})
}
