%% A counter with gen_server: the book shows it, line by line.
%%
%% erlc counter.erl; erl -noshell -s counter main -s init stop

-module(counter).
-behaviour(gen_server).
-export([start/0, add/2, value/1, main/0]).
-export([init/1, handle_call/3, handle_cast/2]).

start() -> gen_server:start(?MODULE, 0, []).
add(Counter, By) -> gen_server:cast(Counter, {add, By}).
value(Counter) -> gen_server:call(Counter, get).

init(N) -> {ok, N}.
handle_cast({add, By}, N) -> {noreply, N + By}.
handle_call(get, _From, N) -> {reply, N, N}.

main() ->
    {ok, Counter} = start(),
    add(Counter, 5),
    5 = value(Counter),
    ok.
