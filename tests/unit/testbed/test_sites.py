import os
import socket
import threading
from pathlib import Path

import pytest

from testbed import ports
from testbed.errors import TestbedError
from testbed.ports import Port
from testbed.site import Options, Site, known, names, process_mark, remove


@pytest.fixture(autouse=True)
def clusters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "foresail" / "testbed"


def test_a_site_is_the_same_for_everyone_who_opens_it() -> None:
    options = Options(
        velero="velero",
        nodes=3,
        karpenter="karpenter",
        audit=True,
        node_seconds=7,
        capacity_buffers=True,
        saves_memory=True,
    )
    made = Site.claim("one", options, owner=None)
    assert Site.open("one") == made
    assert names() == ["one"]


def test_clusters_claimed_at_the_same_time_share_no_port() -> None:
    sites: list[Site] = []
    threads = [
        threading.Thread(target=lambda n=number: sites.append(Site.claim(f"c{n}", Options(), None)))
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    every = [site.port(port) for site in sites for port in Port]
    assert len(set(every)) == len(every) == 8 * len(Port)


def test_a_port_on_which_somebody_listens_is_left_to_them() -> None:
    first = ports.free_block(set(), 340)  # where clusters that come and go beside this test hardly are
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", ports.number(first, Port.S3)))
        assert ports.free_block(set(), first) != first


def test_the_search_for_ports_begins_where_it_is_told_to_and_goes_round() -> None:
    assert ports.free_block(set(), 350) >= 350
    assert ports.free_block(set(range(50, 380)), 350) < 50


def test_a_name_is_used_once() -> None:
    Site.claim("one", Options(), None)
    with pytest.raises(TestbedError, match="'one' is there already"):
        Site.claim("one", Options(), None)
    remove(Site.open("one").folder)
    Site.claim("one", Options(), None)


@pytest.mark.parametrize("name", ["", ".hidden", "../outside", "a/b"])
def test_a_name_that_would_leave_the_folder_is_refused(name: str) -> None:
    with pytest.raises(TestbedError, match="cannot be a cluster's name"):
        Site.claim(name, Options(), None)


def test_what_does_not_exist_cannot_be_opened() -> None:
    with pytest.raises(TestbedError, match="there is no cluster 'nothing'"):
        Site.open("nothing")


def test_a_half_removed_cluster_is_still_listed_so_that_down_finds_it(clusters: Path) -> None:
    (clusters / "half").mkdir(parents=True)
    assert names() == ["half"]
    assert known() == []
    whole = Site.claim("whole", Options(), None)
    assert known() == [whole]


def test_an_owned_cluster_is_an_orphan_when_its_process_is_gone_even_if_the_id_is_used_again() -> None:
    mine = process_mark(os.getpid())
    assert not Site.claim("owned", Options(), mine).is_orphaned
    assert Site.claim("other", Options(), f"{os.getpid()}@1").is_orphaned
    assert not Site.claim("free", Options(), None).is_orphaned
