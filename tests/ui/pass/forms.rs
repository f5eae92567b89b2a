//! Forms of every kind, a module each: in one program, as building one costs more than the forms do.

#[path = "../forms/all_options.rs"]
mod all_options;
#[path = "../forms/associated_items.rs"]
mod associated_items;
#[path = "../forms/batch_messages.rs"]
mod batch_messages;
#[path = "../forms/blocks_of_a_pair.rs"]
mod blocks_of_a_pair;
#[path = "../forms/bounds.rs"]
mod bounds;
#[path = "../forms/bounds_async.rs"]
mod bounds_async;
#[path = "../forms/boxed_messages.rs"]
mod boxed_messages;
#[path = "../forms/cfg_everywhere.rs"]
mod cfg_everywhere;
#[path = "../forms/concurrent_messages.rs"]
mod concurrent_messages;
#[path = "../forms/constants.rs"]
mod constants;
#[path = "../forms/deferred_reply.rs"]
mod deferred_reply;
#[path = "../forms/documented.rs"]
mod documented;
#[path = "../forms/expected_lints.rs"]
mod expected_lints;
#[path = "../forms/generic_traits_of_calls.rs"]
mod generic_traits_of_calls;
#[path = "../forms/generics_of_each_kind.rs"]
mod generics_of_each_kind;
#[path = "../forms/into_parameters.rs"]
mod into_parameters;
#[path = "../forms/keys.rs"]
mod keys;
#[path = "../forms/kinds_of_results.rs"]
mod kinds_of_results;
#[path = "../forms/kinds_of_types.rs"]
mod kinds_of_types;
#[path = "../forms/lanes_and_overflow.rs"]
mod lanes_and_overflow;
#[path = "../forms/local_messages.rs"]
mod local_messages;
#[path = "../forms/macro_fragments.rs"]
mod macro_fragments;
#[path = "../forms/macro_items.rs"]
mod macro_items;
#[path = "../forms/names_of_actors.rs"]
mod names_of_actors;
#[path = "../forms/names_of_messages.rs"]
mod names_of_messages;
#[path = "../forms/other_attributes.rs"]
mod other_attributes;
#[path = "../forms/other_items.rs"]
mod other_items;
#[path = "../forms/patterns.rs"]
mod patterns;
#[path = "../forms/patterns_of_each_kind.rs"]
mod patterns_of_each_kind;
#[path = "../forms/private_types.rs"]
mod private_types;
#[path = "../forms/result_aliases.rs"]
mod result_aliases;
#[path = "../forms/self_in_types.rs"]
mod self_in_types;
#[path = "../forms/three_messages.rs"]
mod three_messages;
#[path = "../forms/timers.rs"]
mod timers;

fn main() -> Result<(), greenroom::Error> {
    all_options::main()?;
    associated_items::main()?;
    batch_messages::main()?;
    blocks_of_a_pair::main()?;
    bounds::main()?;
    bounds_async::main()?;
    boxed_messages::main()?;
    cfg_everywhere::main()?;
    concurrent_messages::main()?;
    constants::main();
    deferred_reply::main();
    documented::main();
    expected_lints::main()?;
    generic_traits_of_calls::main()?;
    generics_of_each_kind::main()?;
    into_parameters::main()?;
    keys::main()?;
    kinds_of_results::main()?;
    kinds_of_types::main()?;
    lanes_and_overflow::main()?;
    local_messages::main();
    macro_fragments::main()?;
    macro_items::main()?;
    names_of_actors::main();
    names_of_messages::main()?;
    other_attributes::main();
    other_items::main();
    patterns::main();
    patterns_of_each_kind::main()?;
    private_types::main()?;
    result_aliases::main();
    self_in_types::main()?;
    three_messages::main();
    timers::main();
    Ok(())
}
