//! A throw-away PostgreSQL cluster on a free port, as a real server would be.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Set to `1` to run the tests that need PostgreSQL; they fail then when it is missing.
const ASKED_FOR: &str = "TRACKWAY_TEST_POSTGRES";

/// A running cluster; dropping it ends it and removes its files.
pub struct PostgresCluster {
    folder: TempDir,
    programs: PathBuf,
    port: u16,
}

impl PostgresCluster {
    /// A cluster; `None` when none was requested: the test is skipped.
    pub fn start_if_asked_for() -> Option<Self> {
        if std::env::var(ASKED_FOR).as_deref() != Ok("1") {
            trackway_skip::skip!("set {ASKED_FOR}=1 to test against a real PostgreSQL");
            return None;
        }
        let cluster = Self::empty();
        let data = cluster.data();
        let mut initdb = cluster.as_server_user("initdb");
        cluster.succeed(initdb.args(["-U", "trackway", "-A", "trust", "--no-sync", "-D"]).arg(&data));
        cluster.start();
        Some(cluster)
    }

    /// A folder and a port for a cluster.
    fn empty() -> Self {
        let folder = TempDir::new().unwrap();
        // Bound and freed again: the server takes it a little later.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let cluster = Self { folder, programs: programs(), port };
        if is_root() {
            cluster.succeed(Command::new("chown").arg("postgres").arg(cluster.folder.path()));
        }
        cluster
    }

    /// A second server that has everything before this one answers that it is committed.
    pub fn standby(&self) -> Self {
        let standby = Self::empty();
        let mut copy = standby.as_server_user("pg_basebackup");
        let port = self.port.to_string();
        copy.args(["-h", "127.0.0.1", "-U", "trackway", "-R", "--no-sync", "-c", "fast", "-p", &port, "-D"]);
        self.succeed(copy.arg(standby.data()));
        standby.start();
        self.psql("alter system set synchronous_standby_names = '*'");
        self.psql("select pg_reload_conf()");
        while self.psql("select sync_state from pg_stat_replication") != ["sync"] {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        standby
    }

    /// Makes a standby the server that is written to.
    pub fn promote(&self) {
        self.psql("alter system reset synchronous_standby_names");
        let mut promote = self.as_server_user("pg_ctl");
        self.succeed(promote.args(["-w", "-D"]).arg(self.data()).arg("promote"));
        self.psql("select pg_reload_conf()");
    }

    /// Starts the server; after [`Self::stop`], on the same data and port.
    pub fn start(&self) {
        let (port, socket) = (self.port, self.folder.path().display());
        let options = format!("-p {port} -c listen_addresses=127.0.0.1 -c fsync=off -k {socket}");
        let log = self.folder.path().join("log");
        let mut start = self.as_server_user("pg_ctl");
        start.args(["-w", "-D"]).arg(self.data()).arg("-l").arg(log).args(["-o", &options, "start"]);
        self.succeed(&mut start);
    }

    /// Serves TLS from now on. The user `certified` is let in by a certificate of `issuer` alone. All three are PEM.
    #[allow(dead_code, reason = "other test binaries use the rest")]
    pub fn serve_tls(&self, certificate: &str, key: &str, issuer: &str) {
        for (setting, name, text) in [
            ("ssl_cert_file", "server.pem", certificate),
            ("ssl_key_file", "server.key", key),
            ("ssl_ca_file", "issuer.pem", issuer),
        ] {
            let path = self.folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            if is_root() {
                self.succeed(Command::new("chown").arg("postgres").arg(&path));
            }
            self.psql(&format!("alter system set {setting} = '{}'", path.display()));
        }
        let access = self.data().join("pg_hba.conf");
        let rules = std::fs::read_to_string(&access).unwrap();
        std::fs::write(&access, format!("hostssl all certified 127.0.0.1/32 cert\n{rules}")).unwrap();
        self.psql("create role certified superuser login");
        self.psql("alter system set ssl = on");
        self.psql("select pg_reload_conf()");
        while self.psql("select ssl from pg_stat_ssl where pid = pg_backend_pid()") != ["t"] {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    /// Ends the server at once, as a crash would.
    pub fn stop(&self) {
        let mut stop = self.as_server_user("pg_ctl");
        self.succeed(stop.args(["-w", "-m", "immediate", "-D"]).arg(self.data()).arg("stop"));
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn url(&self) -> String {
        format!("postgres://trackway@127.0.0.1:{}/postgres", self.port)
    }

    /// The server's clock.
    pub fn now_micros(&self) -> i64 {
        self.psql("select (extract(epoch from now()) * 1000000)::bigint")[0].parse().unwrap()
    }

    /// The rows of a query, columns separated by `|`, as `psql` gives them.
    pub fn psql(&self, query: &str) -> Vec<String> {
        let mut psql = Command::new(self.programs.join("psql"));
        let output = psql.args([&self.url(), "-X", "-A", "-t", "-c", query]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(String::from).collect()
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// PostgreSQL refuses to run as root, so it runs as the user its package makes.
    fn as_server_user(&self, program: &str) -> Command {
        let path = self.programs.join(program);
        if !is_root() {
            return Command::new(path);
        }
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--"]).arg(path).current_dir("/");
        command
    }

    fn succeed(&self, command: &mut Command) {
        // Not piped: the server would keep the pipe open for as long as it lives.
        let log = self.folder.path().join("start.log");
        let file = std::fs::File::create(&log).unwrap();
        let status = command.stdout(file.try_clone().unwrap()).stderr(file).status().unwrap();
        assert!(status.success(), "{command:?}: {}", std::fs::read_to_string(log).unwrap());
    }
}

impl Drop for PostgresCluster {
    fn drop(&mut self) {
        let mut stop = self.as_server_user("pg_ctl");
        let _ = stop.args(["-m", "immediate", "-D"]).arg(self.data()).arg("stop").output();
    }
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().unwrap();
    output.stdout.starts_with(b"0\n")
}

/// The folder with `initdb`: Debian keeps it out of the path.
fn programs() -> PathBuf {
    let mut folders: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|version| version.path().join("bin"))
        .collect();
    folders.sort();
    let in_path = std::env::var_os("PATH").unwrap_or_default();
    let mut all = folders.into_iter().rev().chain(std::env::split_paths(&in_path));
    let has_all = |folder: &PathBuf| {
        ["initdb", "pg_ctl", "psql"].iter().all(|name| Path::new(folder).join(name).exists())
    };
    all.find(has_all).unwrap_or_else(|| panic!("{ASKED_FOR}=1, but no folder holds initdb, pg_ctl and psql"))
}
