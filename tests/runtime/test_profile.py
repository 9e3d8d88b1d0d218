from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beetle.contracts.capabilities import APART, CAPABILITIES, CAPABILITY_NAMES
from beetle.contracts.errors import InvalidRequest
from beetle.runtime.host.choosing import NEEDS, Machine, choose_profile, read_machine
from beetle.runtime.host.profile import (
    ALIASES,
    COMPACT,
    DESKTOP,
    DEV_FULL,
    GATEWAY,
    STANDALONE,
    Budgets,
    Profile,
    load_profile,
    profile_names,
    profiles_folder,
)

REPOSITORY = Path(__file__).parents[2]
KIB, MIB, GIB = 1024, 1024**2, 1024**3
ALL = tuple(ALIASES)

WIRE_TABLE = {
    #                     compact, standalone, desktop, gateway, dev-full
    "frame_bytes": (256 * KIB, 1024 * KIB, 4096 * KIB, 16384 * KIB, 16384 * KIB),
    "nesting": (16, 32, 32, 32, 32),
    "query_chars": (2048, 8192, 8192, 16384, 16384),
    "message_content_bytes": (64 * KIB, 256 * KIB, 1024 * KIB, 1024 * KIB, 1024 * KIB),
    "commit_turns": (50, 200, 500, 1000, 1000),
    "batch_requests": (50, 200, 500, 1000, 1000),
    "recall_limit": (20, 50, 100, 200, 200),
    "connections": (32, 64, 64, 1024, 1024),
    "first_frame_seconds": (10, 10, 10, 10, 10),
    "begun_frame_seconds": (10, 10, 10, 10, 10),
    "key_bytes": (128, 128, 128, 128, 128),
}


@pytest.mark.parametrize(
    ("budget", "alias", "value"),
    [(budget, alias, row[ALL.index(alias)]) for budget, row in WIRE_TABLE.items() for alias in ALL],
)
def test_the_limits_are_those_of_the_wire_protocol(budget: str, alias: str, value: int) -> None:
    assert getattr(load_profile(alias).budgets, budget) == value


@pytest.mark.parametrize("alias", ALL)
def test_every_profile_states_every_budget_as_an_integer(alias: str) -> None:
    budgets = load_profile(alias).budgets
    values = [getattr(budgets, name) for name in Budgets.__struct_fields__]
    assert len(values) == 51
    assert all(type(value) is int for value in values)


def test_the_page_of_profiles_says_of_every_budget_what_it_counts_and_what_happens_there() -> None:
    page = (REPOSITORY / "docs/profiles.md").read_text().partition("What each budget counts")[2]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| `")]
    told = {name.strip("`"): (counts, then) for name, counts, then, *_ in rows if len(name.split()) == 1}
    for name in Budgets.__struct_fields__:
        counts, then = told[name]
        assert len(counts.split()) > 2 and then, name


@pytest.mark.parametrize("alias", ALL)
def test_a_profile_is_named_after_its_target_and_role(alias: str) -> None:
    profile = load_profile(alias)
    assert profile.name == ALIASES[alias] == f"profile-{profile.target}-{profile.role.replace('_', '-')}"
    assert load_profile(profile.name) == profile


@pytest.mark.parametrize("alias", ALL)
def test_page_caches_and_exports_leave_room_under_the_memory_ceiling(alias: str) -> None:
    profile = load_profile(alias)
    caches = ((profile.budgets.readers + 1) * profile.budgets.page_cache_kib + profile.budgets.index_cache_kib) * KIB
    idle = 32 * MIB
    assert idle + caches + profile.budgets.export_bytes < profile.memory_ceiling_mib * MIB


@pytest.mark.parametrize("alias", ALL)
def test_a_full_transcript_page_is_not_clipped_by_its_host_refs_alone(alias: str) -> None:
    budgets = load_profile(alias).budgets
    assert budgets.redaction_items > budgets.transcript_page_turns * budgets.host_refs_per_turn


@pytest.mark.parametrize("alias", ALL)
def test_every_profile_can_list_as_many_as_the_widest_seeded_range(alias: str) -> None:
    assert load_profile(alias).budgets.page_limit >= 100


@pytest.mark.parametrize("alias", ["compact", "standalone"])
def test_a_device_maps_no_memory(alias: str) -> None:
    assert load_profile(alias).budgets.mmap_bytes == 0


def test_the_ceiling_of_a_compact_board_is_48_mib() -> None:
    assert load_profile("compact").memory_ceiling_mib == 48


def test_budgets_never_shrink_from_a_smaller_to_a_larger_deployed_profile() -> None:
    smaller_is_fine = {"default_deadline_ms"}
    ladder = [load_profile(alias).budgets for alias in ("compact", "standalone", "desktop", "gateway")]
    for name in set(Budgets.__struct_fields__) - smaller_is_fine:
        values = [getattr(budgets, name) for budgets in ladder]
        assert values == sorted(values), name


def test_only_dev_full_runs_the_harness_and_it_allows_the_whole_catalog() -> None:
    allowing = [alias for alias in ALL if "harness" in load_profile(alias).capabilities.allowed]
    assert allowing == ["dev-full"]
    assert set(load_profile("dev-full").capabilities.allowed) == set(CAPABILITY_NAMES)


@pytest.mark.parametrize("alias", ALL)
def test_lists_of_a_profile_hold_nothing_twice_and_every_profile_serves_the_local_transports(alias: str) -> None:
    profile = load_profile(alias)
    for names in (profile.capabilities.allowed, profile.backends.allowed, profile.transports.allowed):
        assert len(set(names)) == len(names)
    assert {"in_process", "unix_socket", "cli"} <= set(profile.transports.allowed)


def test_the_catalog_names_each_capability_once_and_keeps_three_apart() -> None:
    assert len(set(CAPABILITY_NAMES)) == len(CAPABILITY_NAMES) == len(CAPABILITIES) + len(APART)
    assert [each.name for each in APART] == ["transcript.raw", "private.read", "admin"]
    assert all(each.meaning and "\n" not in each.meaning for each in (*CAPABILITIES, *APART))


def test_the_build_carries_the_five_profiles() -> None:
    assert set(profile_names()) == set(ALIASES.values()) == {COMPACT, STANDALONE, DESKTOP, GATEWAY, DEV_FULL}


def test_an_installed_package_reads_the_profiles_inside_it_and_a_checkout_those_beside_it(tmp_path: Path) -> None:
    package = tmp_path / "beetle"
    package.mkdir()
    assert profiles_folder(package) == tmp_path / "profiles"
    (package / "profiles").mkdir()
    assert profiles_folder(package) == package / "profiles"


@pytest.mark.parametrize(
    ("wrong", "meant"), [("compakt", "compact"), ("gatway", "gateway"), (STANDALONE + "s", STANDALONE)]
)
def test_an_unknown_profile_is_refused_with_the_nearest_names(wrong: str, meant: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        load_profile(wrong)
    assert wrong in caught.value.message
    assert meant in caught.value.hint


def test_a_name_like_no_profile_is_answered_with_all_of_them() -> None:
    with pytest.raises(InvalidRequest) as caught:
        load_profile("")
    assert all(name in caught.value.hint for name in (*ALIASES, *profile_names()))


def edited(tmp_path: Path, old: str, new: str) -> Path:
    text = (REPOSITORY / "profiles" / f"{COMPACT}.toml").read_text()
    assert old in text
    file = tmp_path / "mine.toml"
    file.write_text(text.replace(old, new))
    return file


def test_an_operator_can_keep_a_profile_of_their_own_in_a_file(tmp_path: Path) -> None:
    file = edited(tmp_path, "store_bytes = 536_870_912", "store_bytes = 1_000_000_000")
    profile = load_profile(str(file))
    assert isinstance(profile, Profile)
    assert profile.budgets.store_bytes == 1_000_000_000


@pytest.mark.parametrize(
    ("old", "new", "path", "words"),
    [
        ("nesting = 16", "nestling = 16", "$.budgets.nestling", "nesting"),
        ("\n[backends]", "\ncolour = 1\n[backends]", "$.colour", "known are"),
        ('default = "embedded"', 'defalt = "embedded"', "$.backends.defalt", "default"),
        ("readers = 2", 'readers = "2"', "$.budgets.readers", "Expected an integer"),
        ("readers = 2", "readers = true", "$.budgets.readers", "Expected an integer"),
        ("readers = 2", "readers = 0", "$.budgets.readers", ">= 1"),
        ("readers = 2", f"readers = {10**30}", "$.budgets.readers", "<="),
        ("readers = 2", "", "$.budgets", "missing required field `readers`"),
        ("background_share_percent = 10", "background_share_percent = 101", "$.budgets.background_share_percent", "<="),
        ('default = "embedded"', 'default = "in-memory"', "$.backends", "not among the allowed"),
        ('"unix_socket", "cli"', '"unix_sockets", "cli"', "$.transports.allowed[1]", "unix_sockets"),
        ('"recall", ', '"recal", ', "$.capabilities", "recall"),
        ("message_content_bytes = 65_536", "message_content_bytes = 400_000", "$.budgets", "is over frame_bytes"),
        ("write_group = 32", "write_group = 33", "$.budgets", "write_group is over write_queue"),
    ],
)
def test_a_profile_with_a_mistake_is_refused_at_its_place(
    tmp_path: Path, old: str, new: str, path: str, words: str
) -> None:
    file = edited(tmp_path, old, new)
    with pytest.raises(InvalidRequest) as caught:
        load_profile(str(file))
    assert caught.value.details["path"] == path
    assert caught.value.details["file"] == str(file)
    assert words in caught.value.message + caught.value.hint


@dataclass(frozen=True)
class Tree:
    """A made-up /proc and /sys."""

    root: Path

    def write(self, path: str, text: object) -> Tree:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
        return self

    def memory(self, mib: int) -> Tree:
        return self.write("proc/meminfo", f"MemTotal:       {mib * 1024} kB\nMemFree:        1024 kB")

    def cores(self, ranges: str, online: str = "0-127") -> Tree:
        self.write("sys/devices/system/cpu/online", online)
        return self.write("proc/self/status", f"Name:\tpython\nCpus_allowed:\tff\nCpus_allowed_list:\t{ranges}")

    def unified(self, group: str = "/", mounted: str = "/") -> Tree:
        self.write("proc/self/cgroup", f"0::{group}")
        return self.write(
            "proc/self/mountinfo",
            f"22 27 0:21 / /proc rw - proc proc rw\n30 23 0:26 {mounted} /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw",
        )

    def read(self) -> Machine:
        """This machine, on a disk with room for every profile."""
        store = self.root / "store"
        read = read_machine(store, self.root)
        return Machine(
            memory_total_bytes=read.memory_total_bytes,
            memory_limit_bytes=read.memory_limit_bytes,
            cores=read.cores,
            cpu_limit=read.cpu_limit,
            disk_room_bytes=500 * GIB,
        )


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.mark.parametrize(
    ("mib", "cores", "name", "figure"),
    [
        (56, "0", COMPACT, "memory 56 MiB"),  # a 64 MB board, less what its kernel keeps
        (118, "0", COMPACT, "memory 118 MiB"),  # a 128 MB board
        (236, "0", STANDALONE, "memory 236 MiB"),  # a 256 MB board
        (487, "0", STANDALONE, "memory 487 MiB"),  # a 512 MB board
        (921, "0-3", STANDALONE, "memory 921 MiB"),  # a 1 GB Pi
        (3792, "0-3", STANDALONE, "memory 3.7 GiB"),  # a 4 GB Pi
        (15_872, "0-7", DESKTOP, "memory 15.5 GiB"),  # a desktop with 16 GB
        (257_000, "0-63", GATEWAY, "cores 64"),  # a server
    ],
)
def test_auto_fits_the_profile_to_the_machine_and_says_by_which_figure(
    tree: Tree, mib: int, cores: str, name: str, figure: str
) -> None:
    choice = choose_profile(tree.memory(mib).cores(cores).unified().read())
    assert choice.name == name
    assert figure in choice.reasons[0]


def test_a_container_with_128_mib_on_a_big_host_is_a_compact_board(tree: Tree) -> None:
    tree.memory(257_000).cores("0-63").unified("/box/one")
    tree.write("sys/fs/cgroup/box/one/memory.max", 128 * MIB)
    choice = choose_profile(tree.read())
    assert choice.name == COMPACT
    assert "128 MiB (control group; the machine has 250.9 GiB)" in choice.reasons[0]
    assert STANDALONE in choice.reasons[0]


@pytest.mark.parametrize("tight", ["box", "box/one", "box/one/two"])
def test_the_smallest_limit_of_the_hierarchy_counts_wherever_it_is(tree: Tree, tight: str) -> None:
    tree.memory(16_000).cores("0-7").unified("/box/one/two")
    for group in ("box", "box/one", "box/one/two"):
        tree.write(f"sys/fs/cgroup/{group}/memory.max", 300 * MIB if group == tight else "max")
    assert tree.read().memory_limit_bytes == 300 * MIB
    assert choose_profile(tree.read()).name == STANDALONE


def test_a_group_that_is_throttled_below_its_limit_counts_as_that_small(tree: Tree) -> None:
    tree.memory(16_000).unified("/box").write("sys/fs/cgroup/box/memory.max", 4 * GIB)
    tree.write("sys/fs/cgroup/box/memory.high", 100 * MIB)
    assert tree.read().memory_limit_bytes == 100 * MIB


def test_limits_of_a_neighbouring_group_do_not_count(tree: Tree) -> None:
    tree.memory(16_000).unified("/box").write("sys/fs/cgroup/boxes/memory.max", 64 * MIB)
    assert tree.read().memory_limit_bytes is None


def test_an_unlimited_group_leaves_the_whole_machine(tree: Tree) -> None:
    tree.memory(15_872).cores("0-7").unified("/box")
    tree.write("sys/fs/cgroup/box/memory.max", "max").write("sys/fs/cgroup/box/cpu.max", "max 100000")
    machine = tree.read()
    assert (machine.memory_limit_bytes, machine.cpu_limit) == (None, None)
    assert choose_profile(machine).name == DESKTOP


def test_a_cpu_quota_counts_as_so_many_cores(tree: Tree) -> None:
    tree.memory(257_000).cores("0-63").unified("/box").write("sys/fs/cgroup/box/cpu.max", "150000 100000")
    choice = choose_profile(tree.read())
    assert choice.name == STANDALONE
    assert "cores 1.5 (control group; the process may run on 64)" in choice.reasons[0]


def test_a_process_bound_to_a_few_cores_of_a_server_gets_no_gateway(tree: Tree) -> None:
    choice = choose_profile(tree.memory(257_000).cores("0-3,8").unified().read())
    assert choice.name == DESKTOP
    assert "cores 5" in choice.reasons[0]


def test_cores_that_are_allowed_but_not_there_do_not_count(tree: Tree) -> None:
    assert tree.cores("0-127", online="0-3").read().cores == 4


V1_MOUNTS = """\
32 31 0:29 {root} /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 {root} /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw"""
V1_GROUPS = "9:name=systemd:/\n4:memory:{group}\n3:cpu,cpuacct:{group}\n0::/"


@pytest.mark.parametrize("mounted", ["/", "/docker/abc"])
def test_version_1_groups_are_read_through_their_own_mounts(tree: Tree, mounted: str) -> None:
    tree.memory(64_000).cores("0-15").write("proc/self/mountinfo", V1_MOUNTS.format(root=mounted))
    tree.write("proc/self/cgroup", V1_GROUPS.format(group="/docker/abc"))
    inside = "" if mounted == "/docker/abc" else "docker/abc/"
    tree.write(f"sys/fs/cgroup/memory/{inside}memory.limit_in_bytes", 96 * MIB)
    tree.write(f"sys/fs/cgroup/cpu,cpuacct/{inside}cpu.cfs_quota_us", 50_000)
    tree.write(f"sys/fs/cgroup/cpu,cpuacct/{inside}cpu.cfs_period_us", 100_000)
    machine = tree.read()
    assert (machine.memory_limit_bytes, machine.cpu_limit) == (96 * MIB, 0.5)
    choice = choose_profile(machine)
    assert choice.name == COMPACT
    assert "96 MiB" in choice.reasons[0]


def test_the_largest_number_of_version_1_means_no_limit(tree: Tree) -> None:
    tree.memory(15_872).cores("0-7").write("proc/self/cgroup", V1_GROUPS.format(group="/"))
    tree.write("proc/self/mountinfo", V1_MOUNTS.format(root="/"))
    tree.write("sys/fs/cgroup/memory/memory.limit_in_bytes", 9223372036854771712)
    tree.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", -1)
    machine = tree.read()
    assert (machine.memory_limit_bytes, machine.cpu_limit) == (None, None)


def test_without_a_list_of_mounts_the_usual_folders_are_read(tree: Tree) -> None:
    tree.write("proc/self/cgroup", "4:memory:/a\n0::/b")
    tree.write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", 70 * MIB)
    tree.write("sys/fs/cgroup/b/memory.max", 60 * MIB)
    assert tree.read().memory_limit_bytes == 60 * MIB


@pytest.mark.parametrize(
    ("group", "mounted"), [("/../inner", "/"), ("/inner", "/box/one"), ("/box/oneinner", "/box/one")]
)
def test_a_group_outside_what_is_mounted_falls_back_to_the_mount(tree: Tree, group: str, mounted: str) -> None:
    tree.unified(group, mounted).write("sys/fs/cgroup/memory.max", 90 * MIB)
    tree.write("sys/fs/cgroup/inner/memory.max", 80 * MIB).write("sys/fs/inner/memory.max", 70 * MIB)
    assert tree.read().memory_limit_bytes == 90 * MIB


def test_a_machine_without_control_groups_is_judged_by_its_total(tree: Tree) -> None:
    choice = choose_profile(tree.memory(487).cores("0-3").read())
    assert choice.name == STANDALONE
    assert "memory 487 MiB" in choice.reasons[0]


def test_where_nothing_can_be_read_the_default_of_a_device_is_taken(tmp_path: Path) -> None:
    machine = read_machine(tmp_path, tmp_path / "nothing")
    assert (machine.memory_total_bytes, machine.memory_limit_bytes, machine.cores) == (None, None, None)
    choice = choose_profile(machine)
    assert choice.name == STANDALONE
    assert "memory unknown" in choice.reasons[0]


def test_files_with_nonsense_in_them_read_as_unknown(tree: Tree) -> None:
    tree.write("proc/meminfo", "MemTotal: lots").write("proc/self/status", "Cpus_allowed_list:\tall")
    tree.unified("/box").write("sys/fs/cgroup/box/memory.max", "12 MB").write("sys/fs/cgroup/box/cpu.max", "1 0")
    (tree.root / "proc/self/cgroup").write_bytes(b"\xff\xfe\nno colons\n0::/box\n")
    read = read_machine(tree.root, tree.root)
    assert read == Machine(disk_room_bytes=read.disk_room_bytes)


def test_a_disk_without_room_for_the_store_gives_a_smaller_profile() -> None:
    choice = choose_profile(Machine(memory_total_bytes=16 * GIB, cores=8, disk_room_bytes=1500 * MIB))
    assert choice.name == COMPACT
    assert "disk room 1.4 GiB" in choice.reasons[0]
    assert "2.0 GiB" in choice.reasons[0]


def test_the_room_that_a_profile_asks_for_is_the_store_that_it_allows() -> None:
    for need in NEEDS:
        assert load_profile(need.name).budgets.store_bytes == need.disk_bytes


def test_what_the_store_already_takes_counts_as_room(tmp_path: Path) -> None:
    size = 64 * MIB
    (tmp_path / "empty").mkdir()
    with (tmp_path / "beetle.db").open("wb") as stream:
        os.posix_fallocate(stream.fileno(), 0, size)
    with_store, without = (read_machine(folder).disk_room_bytes for folder in (tmp_path, tmp_path / "empty"))
    assert with_store is not None
    assert without is not None
    # Other programs use this disk too, so what is free may have changed a little between the two readings.
    assert abs(with_store - without - size) < size // 2


def test_a_store_folder_that_is_not_there_yet_is_measured_and_not_made(tmp_path: Path) -> None:
    room = read_machine(tmp_path / "not" / "yet").disk_room_bytes
    assert room
    assert list(tmp_path.iterdir()) == []


def test_the_cores_of_this_machine_are_what_the_scheduler_says() -> None:
    assert read_machine(Path("/")).cores == len(os.sched_getaffinity(0))


sizes = st.none() | st.integers() | st.sampled_from([0, 192 * MIB, 4 * GIB, 10**400])


@given(
    st.builds(
        Machine,
        memory_total_bytes=sizes,
        memory_limit_bytes=sizes,
        cores=st.none() | st.integers(),
        cpu_limit=st.none() | st.floats(),
        disk_room_bytes=sizes,
    )
)
def test_any_machine_gets_a_profile_that_exists_and_a_reason(machine: Machine) -> None:
    choice = choose_profile(machine)
    assert choice.name in {COMPACT, STANDALONE, DESKTOP, GATEWAY}
    assert choice.reasons
    assert all(choice.reasons)


@given(st.integers(0, 2**50), st.integers(0, 2**50), st.integers(1, 256), st.integers(0, 2**50))
def test_more_memory_never_gives_a_smaller_profile(first: int, second: int, cores: int, room: int) -> None:
    order = [COMPACT, STANDALONE, DESKTOP, GATEWAY]
    chosen = [
        order.index(choose_profile(Machine(memory_total_bytes=total, cores=cores, disk_room_bytes=room)).name)
        for total in sorted((first, second))
    ]
    assert chosen == sorted(chosen)
