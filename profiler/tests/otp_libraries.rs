//! OTP's own libraries of NIFs. The set-up makes those of the fetched OTP open on this machine; another OTP's may not.

mod place;

use beamline_needs::{Need, skipped};
use beamline_runtime_otp_home::{self as otp_home, Lookup, Source};
use place::Place;

/// A place with this in `work.erl`, compiled; none where the OTP is not the fetched one.
fn work(source: &str) -> Option<Place> {
    let place = Place::new(source)?;
    let home = otp_home::find(&Lookup::of_process(None));
    if !home.is_ok_and(|home| home.source == Source::Fetched) {
        let why = "the libraries of this OTP may be for another machine";
        skipped(Need::FetchedOtp, why);
        return None;
    }
    place.printed(&["run", "--", "erlc", "work.erl"]);
    Some(place)
}

fn run(place: &Place) -> String {
    place.printed(&[
        "run", "--", "erl", "-noshell", "-s", "work", "main", "-s", "init", "stop",
    ])
}

/// Vectors: SHA-3 from FIPS 202's examples, the first test of RFC 8032, test case 4 of McGrew and Viega's GCM.
const CRYPTO: &str = r#"
-module(work).
-export([main/0]).
main() ->
    {module, crypto} = code:ensure_loaded(crypto),
    [{Library, _, _}] = crypto:info_lib(),
    io:format("~s~n", [Library]),
    io:format("~s~n", [hex(crypto:hash(sha3_256, <<"abc">>))]),
    Private = bin("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"),
    {Public, _} = crypto:generate_key(eddsa, ed25519, Private),
    Signature = crypto:sign(eddsa, none, <<>>, [Private, ed25519]),
    io:format("~s~n~s~n", [hex(Public), hex(Signature)]),
    io:format("~p~n", [crypto:verify(eddsa, none, <<>>, Signature, [Public, ed25519])]),
    io:format("~p~n", [crypto:verify(eddsa, none, <<"x">>, Signature, [Public, ed25519])]),
    {Cipher, Tag} = crypto:crypto_one_time_aead(aes_128_gcm, bin("feffe9928665731c6d6a8f9467308308"),
        bin("cafebabefacedbaddecaf888"), bin("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
            "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"),
        bin("feedfacedeadbeeffeedfacedeadbeefabaddad2"), true),
    io:format("~s ~s~n", [hex(Cipher), hex(Tag)]),
    {A, B} = {crypto:generate_key(ecdh, x25519), crypto:generate_key(ecdh, x25519)},
    io:format("~p~n", [shared(A, B) =:= shared(B, A)]).
shared({_, Mine}, {Theirs, _}) -> crypto:compute_key(ecdh, Theirs, Mine, x25519).
hex(Bytes) -> string:lowercase(binary:encode_hex(Bytes)).
bin(Hex) -> binary:decode_hex(iolist_to_binary(Hex)).
"#;

#[test]
fn crypto_is_opened_and_calculates() {
    let Some(place) = work(CRYPTO) else { return };
    let printed = run(&place);
    let lines: Vec<&str> = printed.lines().collect();
    let expected = [
        "OpenSSL",
        "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
        "true",
        "false",
        "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091 5bc94fbc3221a5db94fae95ae7121a47",
        "true",
    ];
    assert_eq!(lines, expected);
}

const ASN1: &str = r#"
-module(work).
-export([main/0]).
main() ->
    ok = asn1ct:compile("Names", [ber, maps, noobj]),
    {ok, 'Names'} = compile:file("Names", [report, nowarn_unused_function]),
    Value = #{name => <<"joe"/utf8>>, ages => [1, -128, 1 bsl 70]},
    {ok, Bytes} = 'Names':encode('Person', Value),
    io:format("~s~n", [binary:encode_hex(Bytes)]),
    io:format("~p~n", [{ok, Value} =:= 'Names':decode('Person', Bytes)]),
    {error, {asn1, _}} = 'Names':decode('Person', binary:part(Bytes, 0, 4)).
"#;

#[test]
fn asn1_is_opened_and_decodes() {
    let Some(place) = work(ASN1) else { return };
    place.write(
        "Names.asn1",
        "Names DEFINITIONS AUTOMATIC TAGS ::= BEGIN\n\
         Person ::= SEQUENCE { name UTF8String, ages SEQUENCE OF INTEGER }\n\
         END\n",
    );
    let printed = run(&place);
    let lines: Vec<&str> = printed.lines().collect();
    let expected = [
        // 30 18: the sequence; 80 03: the name; A1 11: the list of three integers.
        "301880036A6F65A1110201010201800209400000000000000000",
        "true",
    ];
    assert_eq!(lines, expected);
}
