{module,sample}.
{md5,<<16#0f2fe737881c12c2377460935d6620cc:128>>}.
{exports,[{f,1}]}.
{record,user,exported,[name,{age,{integer,-1}}]}.
{labels,8}.

{function,f,1,2}.
  {label,1}.
    {line,{"sample.erl",7}}.
    {func_info,{atom,sample},{atom,f},1}.
  {label,2}.
    {allocate_heap,1,{alloc,[{words,4},{floats,1},{funs,0}]},1}.
    {gc_bif2,{f,0},1,{extfunc,erlang,'+',2},{tr,{x,0},integer(0..255)},{integer,-5},{x,0}}.
    {move,{integer,16#040000000000000000000000},{x,1}}.
    {move,{literal,[131, 107, 0, 2, 104, 105]},{y,0}}.
    {fmove,{x,0},{fr,3}}.
    {select_val,{x,0},{f,7},{list,[{atom,'Ünïted \'atom\''},{f,7},{integer,3000},{f,7}]}}.
  {label,7}.
    {make_fun3,{fun,'-f/1-fun-0-',2,1},{x,2},{list,[{x,0}]}}.
    {line,{"inc/x.hrl",300}}.
    {call_ext,1,{extfunc,sample,f,1}}.
    {bs_create_bin,{f,0},0,2,8,{x,0},{list,[{atom,string},1,8,nil,{string,<<"abc">>},{integer,3}]}}.
    {bs_match_string,{f,7},{x,0},12,{string,<<1,255>>}}.
    {call_last,2,{f,4},1}. % g/2

{function,g,2,4}.
  {label,3}.
    {line,{"inc/x.hrl",70000}}.
    {func_info,{atom,sample},{atom,g},2}.
  {label,4}.
    return.

{function,'-f/1-fun-0-',2,6}.
  {label,5}.
    {func_info,{atom,sample},{atom,'-f/1-fun-0-'},2}.
  {label,6}.
    {move,nil,{x,0}}.
    return.
