//! A throw-away PostgreSQL cluster on a free port, as a real server would be.

use std::net::TcpListener;
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
    /// A cluster, or `None` (told) when nobody asked for one.
    pub fn start_if_asked_for() -> Option<Self> {
        if std::env::var(ASKED_FOR).as_deref() != Ok("1") {
            println!("skipped: set {ASKED_FOR}=1 to test against a real PostgreSQL");
            return None;
        }
        let folder = TempDir::new().unwrap();
        // Bound and freed again: the server takes it a moment later.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let cluster = Self { folder, programs: programs(), port };
        if is_root() {
            cluster.succeed(Command::new("chown").arg("postgres").arg(cluster.folder.path()));
        }
        let data = cluster.data();
        let mut initdb = cluster.as_server_user("initdb");
        cluster.succeed(initdb.args(["-U", "trackway", "-A", "trust", "--no-sync", "-D"]).arg(&data));
        let socket = cluster.folder.path().display();
        let options = format!("-p {port} -c listen_addresses=127.0.0.1 -c fsync=off -k {socket}");
        let log = cluster.folder.path().join("log");
        let mut start = cluster.as_server_user("pg_ctl");
        cluster
            .succeed(start.args(["-w", "-D"]).arg(&data).arg("-l").arg(log).args(["-o", &options, "start"]));
        Some(cluster)
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
