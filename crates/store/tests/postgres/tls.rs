//! Encryption: the certificate and the name are checked, always.

use outlast_store::{PostgresOptions, PostgresStore, Store, StoreError, Tls};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::scene::{Schema, new_run};
use super::server::Server;

/// A root of trust.
fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A server whose certificate is for `localhost` alone, and which takes no connection in the clear from stores.
fn server(authority: &CertifiedIssuer<'static, KeyPair>) -> Server {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    let files = [("server.crt", certificate.pem()), ("server.key", key.serialize_pem())];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    Server::started(&files, "ssl = on")
}

fn options(schema: &Schema, tls: Tls) -> PostgresOptions {
    PostgresOptions { tls, ..schema.options() }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_right_root_and_name_connections_are_encrypted() {
    let authority = authority();
    let server = server(&authority);
    let schema = Schema::at(&server.url().replace("127.0.0.1", "localhost"));
    let tls = Tls::Roots(authority.pem().into_bytes());
    let store = PostgresStore::connect(&schema.url, options(&schema, tls)).await.unwrap();
    store.create(vec![new_run("a", None)]).await.remove(0).unwrap();
    let sessions = "SELECT count(*) FROM pg_stat_activity a JOIN pg_stat_ssl s USING (pid) WHERE application_name = $1";
    let raw = schema.raw().await;
    let count = |sql: String| {
        let (raw, name) = (&raw, &schema.name);
        async move { raw.query_one(&sql, &[name]).await.unwrap().get::<_, i64>(0) }
    };
    assert!(count(format!("{sessions} AND s.ssl")).await > 0);
    assert_eq!(count(format!("{sessions} AND NOT s.ssl")).await, 0);
    drop(store);
    schema.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_root_or_a_wrong_name_is_refused() {
    let authority = authority();
    let server = server(&authority);
    let by_name = server.url().replace("127.0.0.1", "localhost");
    let right = || Tls::Roots(authority.pem().into_bytes());
    let wrong = Tls::Roots(self::authority().pem().into_bytes());
    for (url, tls, why) in
        [(&by_name, wrong, "root"), (&server.url(), right(), "name"), (&by_name, Tls::System, "root")]
    {
        let schema = Schema::at(url);
        let refused = PostgresStore::connect(&schema.url, options(&schema, tls.clone())).await.err();
        // A system without any trusted root says so instead.
        let expected = |error: &StoreError| matches!(error, StoreError::Unavailable { .. } | StoreError::Settings(_));
        assert!(refused.as_ref().is_some_and(expected), "a wrong {why} was accepted with {tls:?}: {refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_encryption_is_refused_rather_than_talked_to_in_the_clear() {
    let server = Server::started(&[], "");
    let schema = Schema::at(&server.url().replace("127.0.0.1", "localhost"));
    let tls = Tls::Roots(authority().pem().into_bytes());
    let refused = PostgresStore::connect(&schema.url, options(&schema, tls)).await.err();
    assert!(matches!(refused, Some(StoreError::Unavailable { .. })), "{refused:?}");
}
