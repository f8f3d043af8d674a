import pytest

from foresail.scope.server import server_flags

FLAG = "--default-volumes-to-fs-backup"


@pytest.mark.parametrize(
    ("arguments", "is_default"),
    [
        ([], False),
        ([FLAG], True),
        ([f"{FLAG}=true"], True),
        ([f"{FLAG}=1"], True),
        ([f"{FLAG}=false"], False),
        ([f"{FLAG}=true", f"{FLAG}=false"], False),
        ([FLAG, "--uploader-type=kopia"], True),
    ],
)
def test_the_default_for_file_system_backup_is_a_flag(arguments: list[str], is_default: bool) -> None:
    assert server_flags(["server", *arguments]).default_volumes_to_fs_backup == is_default


@pytest.mark.parametrize(
    ("arguments", "has_csi"),
    [
        ([], False),
        (["--features="], False),
        (["--features=EnableCSI"], True),
        (["--features", "EnableAPIGroupVersions,EnableCSI"], True),
        (["--features=Other", "--features=EnableCSI"], True),
        (["--features=EnableCSI", "--features=Other"], False),
        (["--features=Other, EnableCSI"], False),
    ],
)
def test_csi_is_a_feature(arguments: list[str], has_csi: bool) -> None:
    assert server_flags(["server", *arguments]).has_csi == has_csi


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ([], ""),
        (["--global-backup-volume-policies-configmap=rules"], "rules"),
        (["--global-backup-volume-policies-configmap", "rules"], "rules"),
        (["--global-backup-volume-policies-configmap=a", "--global-backup-volume-policies-configmap", "b"], "b"),
        (["--global-backup-volume-policies-configmap"], ""),
    ],
)
def test_volume_policies_of_all_backups_are_in_a_config_map(arguments: list[str], name: str) -> None:
    assert server_flags(["server", *arguments]).global_policies == name
