//! Attempts to get out. Each says `ESCAPED` if it worked. Wherever that does no harm, it is made
//! without a sandbox as well, where it has to work: an attempt that cannot succeed proves nothing.

use std::fs;
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::PathBuf;
use std::process::{Child, Command};

use antiphon_sandbox::{Network, SandboxMode};
use antiphon_shell::ShellSettings;

use crate::bench::{Bench, token};

/// Whether an attempt works without a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Control {
    /// It works, and does no harm.
    Works,
    /// It needs privileges or features that may be missing, or would do harm.
    Unknown,
}
use Control::{Unknown, Works};

/// Targets outside of the sandbox.
struct World {
    bench: Bench,
    out: PathBuf,
    victim: Child,
    token: String,
    tcp: TcpListener,
    udp: UdpSocket,
    _sockets: [UnixListener; 2],
    abstract_name: String,
}

impl World {
    fn new(change: impl FnOnce(&mut ShellSettings)) -> Self {
        let mut secret = PathBuf::new();
        let bench = Bench::with(|settings| {
            let base = settings.results.parent().unwrap().canonicalize().unwrap();
            secret = base.join("out/secret");
            settings.policy.hidden.push(secret.clone());
            change(settings);
        });
        let out = bench.outside("out");
        fs::create_dir(&out).unwrap();
        fs::write(out.join("victim"), "as it was").unwrap();
        fs::write(&secret, "the secret").unwrap();
        let git = bench.root.join(".git");
        fs::create_dir_all(git.join("hooks")).unwrap();
        fs::write(git.join("config"), "[core]\n").unwrap();
        fs::create_dir(bench.root.join(".antiphon")).unwrap();
        fs::write(bench.root.join(".antiphon/journal.db"), "the journal").unwrap();
        let token = token();
        let victim =
            Command::new("sleep").arg(&token).env("SECRET", "in its environment").spawn().unwrap();
        let abstract_name = format!("antiphon-{token}");
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let sockets = [
            UnixListener::bind(out.join("socket")).unwrap(),
            UnixListener::bind_addr(&address).unwrap(),
        ];
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.set_nonblocking(true).unwrap();
        Self { bench, out, victim, token, tcp, udp, _sockets: sockets, abstract_name }
    }

    async fn attempt(&self, command: &str) -> String {
        let base = self.bench.outside("");
        let prefix = format!(
            "export PATH=/usr/bin:/bin:/usr/sbin:/sbin:$PATH OUT={} ROOT={} BASE={} PID={} TOKEN={} \
             TCP={} UDP={} ABSTRACT={}\n",
            self.out.display(),
            self.bench.root.display(),
            base.display(),
            self.victim.id(),
            self.token,
            self.tcp.local_addr().unwrap().port(),
            self.udp.local_addr().unwrap().port(),
            self.abstract_name,
        );
        self.bench.run(&(prefix + command)).await.text
    }

    /// Everything outside is as it was.
    fn assert_untouched(&mut self, what: &str) {
        let mut names: Vec<_> =
            fs::read_dir(&self.out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["secret", "socket", "victim"], "{what}");
        assert_eq!(fs::read_to_string(self.out.join("victim")).unwrap(), "as it was", "{what}");
        let mode = fs::metadata(self.out.join("victim")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7022, 0, "{what}");
        let git = self.bench.root.join(".git");
        assert_eq!(fs::read_to_string(git.join("config")).unwrap(), "[core]\n", "{what}");
        assert_eq!(fs::read_dir(git.join("hooks")).unwrap().count(), 0, "{what}");
        assert_eq!(fs::read_dir(self.bench.root.join(".antiphon")).unwrap().count(), 1, "{what}");
        assert!(self.victim.try_wait().unwrap().is_none(), "{what}");
        assert!(self.udp.recv(&mut [0; 8]).is_err(), "{what}: a packet arrived");
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

async fn attempts(list: &[(&str, Control, &str)]) {
    let mut inside = World::new(|_| {});
    for (what, control, command) in list {
        let text = inside.attempt(command).await;
        assert!(!text.contains("ESCAPED"), "{what}\n{command}\n{text}");
        assert!(text.contains("[exit code"), "{what}\n{command}\n{text}");
        inside.assert_untouched(what);
        if *control == Works {
            // A world of its own: the attempt changes it.
            let outside = World::new(|settings| settings.policy.mode = SandboxMode::Full);
            let text = outside.attempt(command).await;
            assert!(text.contains("ESCAPED"), "works nowhere: {what}\n{command}\n{text}");
        }
    }
}

/// Python with ctypes; `call` makes a system call and says how it failed.
fn python(script: &str) -> String {
    format!(
        "python3 - <<'END'\nimport ctypes, os, socket, sys, fcntl, struct\n\
         libc = ctypes.CDLL(None, use_errno=True)\n\
         def call(*a):\n r = libc.syscall(*[ctypes.c_long(x) if isinstance(x, int) else x for x in a])\n\
         \x20return 0 if r >= 0 else ctypes.get_errno()\n{script}\nEND"
    )
}

#[tokio::test]
async fn nothing_is_written_outside() {
    attempts(&[
        ("an absolute path", Works, "echo x > $OUT/victim && echo ESCAPED"),
        ("a path with ..", Works, "cd $ROOT && echo x > ../out/victim && echo ESCAPED"),
        ("a new file", Works, "echo x > $OUT/new && echo ESCAPED"),
        ("a link to a file", Works, "ln -s $OUT/victim l1 && echo x > l1 && echo ESCAPED"),
        ("a link to a folder", Works, "ln -s $OUT l2 && echo x > l2/new && echo ESCAPED"),
        ("a hard link", Works, "ln $OUT/victim l3 && echo x > l3 && echo ESCAPED"),
        ("moving something out", Works, "echo x > f1 && mv f1 $OUT/new && echo ESCAPED"),
        ("moving something in", Works, "mv $OUT/victim taken; [ -e $OUT/victim ] || echo ESCAPED"),
        ("removing", Works, "rm -f $OUT/victim; [ -e $OUT/victim ] || echo ESCAPED"),
        ("truncating", Works, "truncate -s 0 $OUT/victim && echo ESCAPED"),
        ("appending", Works, "echo x >> $OUT/victim && echo ESCAPED"),
        ("changing the mode", Works, "chmod 777 $OUT/victim && echo ESCAPED"),
        ("changing the owner", Works, "chown $(id -u) $OUT/victim && echo ESCAPED"),
        ("changing the group", Works, "chgrp $(id -g) $OUT/victim && echo ESCAPED"),
        ("changing times", Works, "touch -d 2001-01-01 $OUT/victim && echo ESCAPED"),
        ("making a folder", Works, "mkdir $OUT/folder && echo ESCAPED"),
        ("making a fifo", Works, "mkfifo $OUT/fifo && echo ESCAPED"),
        ("making a link", Works, "ln -s / $OUT/link && echo ESCAPED"),
        ("our own root folder", Works, "echo x > /proc/self/root$OUT/victim && echo ESCAPED"),
        ("the worker's root folder", Unknown, "echo x > /proc/1/root$OUT/victim && echo ESCAPED"),
        ("the home folder", Unknown, "echo x > ~/.antiphon-escaped && echo ESCAPED"),
        ("settings of the machine", Unknown, "touch /etc/antiphon-escaped && echo ESCAPED"),
        ("libraries for every program", Unknown, ": >> /etc/ld.so.preload && echo ESCAPED"),
        ("the results of others", Works, "touch $BASE/results/x && echo ESCAPED"),
    ])
    .await;
}

#[tokio::test]
async fn attributes_are_not_changed_outside() {
    let set = "os.setxattr(os.environ['OUT'] + '/victim', 'user.x', b'1'); print('ESCAPED')";
    attempts(&[("an attribute", Works, &python(set))]).await;
}

#[tokio::test]
async fn protected_files_stay_unchanged() {
    let exchange = "print('ESCAPED' if call(316, -100, b'.git', -100, b'mine', 2) == 0 else 'no')";
    attempts(&[
        ("the configuration", Works, "echo x >> .git/config && echo ESCAPED"),
        ("a hook", Works, "echo x > .git/hooks/pre-commit && echo ESCAPED"),
        ("a new folder", Works, "mkdir .git/more && echo ESCAPED"),
        ("git itself", Works, "git init -q . ; git config core.fsmonitor evil && echo ESCAPED"),
        ("moving it away", Works, "mv .git aside && echo ESCAPED"),
        (
            "moving it away by another name",
            Works,
            "mv ./x/../.git aside 2>&1; mv $ROOT/.git a && echo ESCAPED",
        ),
        ("removing it", Works, "rm -rf .git; [ -e .git/config ] || echo ESCAPED"),
        ("a hard link to it", Works, "ln .git/config l4 && echo x >> l4 && echo ESCAPED"),
        (
            "the folder as our own",
            Works,
            "cd .git && echo x >> /proc/self/cwd/config && echo ESCAPED",
        ),
        ("a link to it", Works, "ln -s .git l5 && echo x >> l5/config && echo ESCAPED"),
        ("its mode", Works, "chmod -R 777 .git && echo ESCAPED"),
        ("its times", Works, "touch .git/config && echo ESCAPED"),
        ("another in its place", Works, &("mkdir -p mine/hooks; ".to_owned() + &python(exchange))),
        ("a name that is not there yet", Works, "mkdir -p .ideai/requests && echo ESCAPED"),
        (
            "one made again",
            Works,
            "rmdir .ideai; mkdir .ideai/x || mkdir -p .ideai/x && echo ESCAPED",
        ),
        ("a file in its place", Works, "rm -rf .ideai; echo x > .ideai && echo ESCAPED"),
        ("reading what is hidden", Works, "grep -q journal .antiphon/journal.db && echo ESCAPED"),
        ("adding to what is hidden", Works, "mkdir .antiphon/agents && echo ESCAPED"),
        ("moving what is hidden", Works, "mv .antiphon aside && cat aside/* && echo ESCAPED"),
        ("a hidden file", Works, "grep -q secret $OUT/secret && echo ESCAPED"),
        (
            "a hidden file by a link",
            Works,
            "ln -s $OUT/secret l6; grep -q secret l6 && echo ESCAPED",
        ),
        ("unmounting", Unknown, "umount .git && echo ESCAPED; umount -l $ROOT && echo ESCAPED"),
    ])
    .await;
}

#[tokio::test]
async fn there_is_no_way_into_other_namespaces() {
    attempts(&[
        ("a user namespace", Works, "unshare -r true && echo ESCAPED"),
        ("a mount in one", Works, "unshare -rm mount --bind $ROOT $OUT && echo ESCAPED"),
        ("a mount", Unknown, "mount --bind $ROOT $OUT && echo ESCAPED"),
        ("another mount", Unknown, "mount -t tmpfs none $ROOT && echo ESCAPED"),
        ("a remount", Unknown, "mount -o remount,bind,rw / && echo ESCAPED"),
        ("the worker's namespaces", Unknown, "nsenter -t 1 -m -n true && echo ESCAPED"),
        ("the namespaces of somebody", Unknown, "nsenter -t $PID -m true && echo ESCAPED"),
        ("another root", Unknown, "chroot / true && echo ESCAPED"),
        ("a process namespace", Unknown, "unshare -p true && echo ESCAPED"),
        ("a network namespace", Unknown, "unshare -n true && echo ESCAPED"),
    ])
    .await;
}

#[tokio::test]
async fn processes_outside_are_out_of_reach() {
    let seen = "for p in /proc/[0-9]*; do \
                [ \"$(tr -d '\\0' < $p/cmdline)\" = \"sleep$TOKEN\" ] && echo ESCAPED; done; true";
    let environment = "grep -qz 'in its environment' /proc/*/environ && echo ESCAPED";
    let memory = "import os\nopen(f'/proc/{os.getppid()}/mem', 'r+b'); print('ESCAPED')";
    let worker = "open('/proc/1/mem', 'rb'); print('ESCAPED')";
    let trace = "print('ESCAPED' if call(101, 0, 0, 0, 0) == 0 else 'no')";
    let descriptor = "fd = os.pidfd_open(os.getppid()); \
                      print('ESCAPED' if call(438, fd, 0, 0) == 0 else 'no')";
    let own = "b = ctypes.create_string_buffer(8)\n\
               v = struct.pack('QQ', ctypes.addressof(b), 8); v = ctypes.create_string_buffer(v)\n\
               r = libc.process_vm_readv(os.getpid(), v, 1, v, 1, 0); print('ESCAPED' if r > 0 else 'no')";
    attempts(&[
        ("a signal", Works, "kill -0 $PID && echo ESCAPED"),
        ("seeing them", Works, seen),
        ("their environment", Works, environment),
        ("the memory of the worker", Unknown, &python(memory)),
        ("reading the memory of the worker", Unknown, &python(worker)),
        ("tracing", Works, &python(trace)),
        ("the descriptors of the worker", Works, &python(descriptor)),
        ("the memory of a process", Works, &python(own)),
        (
            "a debugger",
            Unknown,
            "command -v gdb && gdb -q -batch -p 1 2>&1 | grep -q '^#0' && echo ESCAPED; true",
        ),
        ("strace", Unknown, "command -v strace && strace -o /dev/null true && echo ESCAPED; true"),
        ("the root of somebody", Works, "ls /proc/$PID/root/ && echo ESCAPED"),
    ])
    .await;
}

#[tokio::test]
async fn no_process_outside_is_reachable_over_sockets() {
    let path = "s = socket.socket(socket.AF_UNIX); s.connect(os.environ['OUT'] + '/socket'); print('ESCAPED')";
    let name = "s = socket.socket(socket.AF_UNIX); s.connect('\\0' + os.environ['ABSTRACT']); print('ESCAPED')";
    let raw = "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); print('ESCAPED')";
    let families = "for f in (17, 31, 38, 40, 44):\n try: socket.socket(f, socket.SOCK_DGRAM if f != 38 else 5); print('ESCAPED', f)\n except OSError: pass";
    let netlink = "for p in (2, 9, 12, 16, 20):\n try: socket.socket(16, 3, p); print('ESCAPED', p)\n except OSError: pass";
    attempts(&[
        ("the machine's loopback", Works, "exec 3<> /dev/tcp/127.0.0.1/$TCP && echo ESCAPED"),
        ("a packet", Unknown, "echo x > /dev/udp/127.0.0.1/$UDP; true"),
        ("a socket in a folder", Works, &python(path)),
        ("an abstract socket", Works, &python(name)),
        ("raw packets", Unknown, &python(raw)),
        ("odd families", Unknown, &python(families)),
        ("other netlinks", Works, &python(netlink)),
        ("the machine's interfaces", Unknown, "grep -vE 'lo|Inter|face' /proc/net/dev && echo ESCAPED; true"),
        ("changing interfaces", Unknown, "ip link set lo up && echo ESCAPED; true"),
        ("services", Unknown, "ls -A /run /var/run | grep -vE '^(/.*:|systemd|current-system|opengl-driver|)$' && echo ESCAPED; true"),
        ("a container engine", Unknown, "ls /run/docker.sock /var/run/docker.sock && echo ESCAPED; true"),
    ])
    .await;
}

#[tokio::test]
async fn the_kernel_is_not_changed() {
    attempts(&[
        ("core dumps", Unknown, "f=/proc/sys/kernel/core_pattern; cat $f > $f && echo ESCAPED; true"),
        ("requests to the kernel", Unknown, "echo h > /proc/sysrq-trigger && echo ESCAPED; true"),
        ("host name", Unknown, "hostname \"$(hostname)\" && echo ESCAPED; true"),
        ("control groups", Unknown, "mkdir /sys/fs/cgroup/x && echo ESCAPED; \
            for f in $(find /sys/fs/cgroup -name cgroup.procs 2>/dev/null | head -50); do \
            echo $$ 2>/dev/null > $f && echo ESCAPED; done; true"),
        ("a disk", Unknown, "for d in /dev/[svn][dv]* /dev/mem /dev/kmsg; do [ -e $d ] && echo ESCAPED; done; true"),
        ("a device of our own", Unknown, "mknod disk b 254 0 && echo ESCAPED; mknod null c 1 3 && echo ESCAPED; true"),
        ("privileges", Works, "grep -q 'NoNewPrivs:.0' /proc/self/status && echo ESCAPED; true"),
        ("more privileges", Unknown, "grep -E 'Cap(Eff|Prm|Inh|Bnd|Amb)' /proc/self/status | grep -v 0000000000000000 && echo ESCAPED; true"),
        ("a program that sets its user", Unknown, "cp /bin/bash b; chmod u+s b; ./b -p -c 'grep CapEff /proc/self/status' | grep -v 0000000000000000 && echo ESCAPED; true"),
        ("becoming somebody", Unknown, "su -s /bin/true nobody && echo ESCAPED; setpriv --reuid 65534 true && echo ESCAPED; true"),
        ("messages of the kernel", Unknown, "dmesg > /dev/null && echo ESCAPED; true"),
        ("more than the limits", Unknown, "ulimit -Hc 100 && echo ESCAPED; ulimit -n 1000000 && echo ESCAPED; true"),
    ])
    .await;
}

#[tokio::test]
async fn system_calls_that_lead_out_are_refused() {
    let world = World::new(|_| {});
    // ptrace, mount, umount2, pivot_root, keyctl, bpf, perf_event_open, userfaultfd, io_uring_setup,
    // kexec_load, init_module, setns, process_vm_writev, open_by_handle_at, move_mount, fsopen.
    let numbers = "101 165 166 155 250 321 298 323 425 246 175 308 311 304 429 430";
    let script = format!(
        "for n in map(int, '{numbers}'.split()):\n print(n, call(n, 0, 0, 0, 0, 0))\n\
         print('clone3', call(435, 0, 0))\n\
         print('second table', call(0x40000000 + 101, 0, 0, 0, 0), call(0x40000000 + 521, 0, 0, 0, 0))\n\
         print('namespaces', [call(272, b) for b in (0x80, 0x20000, 0x2000000, 0x10000000, 0x40000000)])\n\
         print('harmless', call(272, 0x200), call(39))"
    );
    let text = world.attempt(&python(&script)).await;
    if cfg!(target_arch = "x86_64") {
        for number in numbers.split(' ') {
            assert!(text.contains(&format!("{number} 1\n")), "{number}\n{text}");
        }
        assert!(text.contains("clone3 38\n"), "{text}");
        assert!(text.contains("second table 38 38\n"), "{text}");
        assert!(text.contains("namespaces [1, 1, 1, 1, 1]\n"), "{text}");
        assert!(text.contains("harmless 0 0\n"), "{text}");
    }
}

#[tokio::test]
async fn no_command_can_type_into_a_terminal() {
    let world = World::new(|_| {});
    let script = "import pty\npid, fd = pty.fork()\nif pid == 0:\n try: fcntl.ioctl(0, 0x5412, b'x'); print('ESCAPED')\n except OSError as e: print('errno', e.errno)\n os._exit(0)\ntext = b''\ntry:\n while True: text += os.read(fd, 100)\nexcept OSError: print(text.decode())";
    let text = world.attempt(&python(script)).await;
    assert!(text.contains("errno 1"), "{text}");
}

#[tokio::test]
async fn open_descriptors_are_not_inherited() {
    let world = World::new(|_| {});
    let file = fs::File::create(world.bench.outside("inherited")).unwrap();
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    let text =
        world.attempt("ls -l /proc/self/fd /proc/1/fd 2>&1 | grep inherited && echo ESCAPED").await;
    assert!(!text.contains("ESCAPED"), "{text}");
    let text = world.attempt("ls /proc/$$/fd | tr '\\n' ' '").await;
    assert!(text.starts_with("0 1 2"), "{text}");
    drop(file);
}

#[tokio::test]
async fn writes_to_shared_folders_stay_in_the_sandbox() {
    let world = World::new(|_| {});
    let name = format!("antiphon-{}", world.token);
    for place in ["/tmp", "/var/tmp", "/dev/shm"] {
        let path = format!("{place}/{name}");
        world.bench.works(&format!("echo x > {path} && cat {path}")).await;
        assert!(!PathBuf::from(&path).exists(), "{path}");
    }
    let text = world.attempt("ls -A $BASE/tmp $BASE/results").await;
    assert!(!text.contains("task-"), "{text}");
}

#[tokio::test]
async fn with_a_network_only_the_network_is_there() {
    let mut world = World::new(|settings| settings.policy.network = Network::On);
    world.tcp.set_nonblocking(true).unwrap();
    world.attempt("echo hello > /dev/tcp/127.0.0.1/$TCP").await;
    let (mut connection, _) = world.tcp.accept().unwrap();
    let mut text = String::new();
    connection.set_nonblocking(false).unwrap();
    connection.read_to_string(&mut text).unwrap();
    assert_eq!(text, "hello\n");
    for (what, command) in [
        (
            "an abstract socket",
            python(
                "s = socket.socket(socket.AF_UNIX); s.connect('\\0' + os.environ['ABSTRACT']); print('ESCAPED')",
            ),
        ),
        (
            "a socket in a folder",
            python(
                "s = socket.socket(socket.AF_UNIX); s.connect(os.environ['OUT'] + '/socket'); print('ESCAPED')",
            ),
        ),
        ("a file", "echo x > $OUT/victim && echo ESCAPED".to_owned()),
        ("a signal", "kill -0 $PID && echo ESCAPED".to_owned()),
    ] {
        let text = world.attempt(&command).await;
        assert!(!text.contains("ESCAPED"), "{what}: {text}");
        world.assert_untouched(what);
    }
}

#[tokio::test]
async fn read_only_means_the_workspace_too() {
    let mut world = World::new(|settings| settings.policy.mode = SandboxMode::ReadOnly);
    for command in [
        "echo x > $ROOT/file && echo ESCAPED",
        "mkdir $ROOT/folder && echo ESCAPED",
        "chmod 777 $ROOT && echo ESCAPED",
        "echo x > $OUT/victim && echo ESCAPED",
        "grep -q journal .antiphon/journal.db && echo ESCAPED",
        "mkdir .ideai && echo ESCAPED",
    ] {
        let text = world.attempt(command).await;
        assert!(!text.contains("ESCAPED"), "{command}: {text}");
        world.assert_untouched(command);
    }
    assert_eq!(
        world.bench.works("cat .git/config; echo x > /tmp/x; cat /tmp/x").await,
        "[core]\nx\n"
    );
    assert!(!world.bench.root.join(".ideai").exists());
}
