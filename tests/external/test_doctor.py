"""Check `storage` on a folder and on a real S3 API: what a host may not do is named, and nothing is left behind."""

import json
import urllib.request
from pathlib import Path

import boto3
import pytest
from tests.external.conftest import Place
from tests.support.object_store import BUCKET, S3, Mood

from agentvisor.host.checks.examine import NAMES, Examination
from agentvisor.host.checks.finding import Finding, Verdict
from agentvisor.host.checks.storage import check_storage
from agentvisor.host.config import load_config

pytestmark = pytest.mark.flow


async def checked(url: str, options: dict[str, str] | None = None) -> Finding:
    overrides: dict[str, object] = {"storage.url": url, "storage.options": options or {}}
    return await check_storage(load_config(Path("/tmp"), environ={}, overrides=overrides))


async def test_an_object_is_written_read_listed_and_deleted(place: Place) -> None:
    place.backend()  # a host was here
    found = await checked(place.url, place.options)
    assert (found.verdict, found.advice) == (Verdict.OK, "")
    assert "written, read back, listed and deleted" in found.seen
    assert place.keys() == []


async def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    found = await checked(f"file://{tmp_path}/away")
    assert found.verdict is Verdict.WARNING
    assert "is its disk mounted?" in found.advice
    assert not (tmp_path / "away").exists()


async def test_a_bucket_that_may_only_be_read_is_told_as_that(s3: S3) -> None:
    inside = s3._address.removesuffix(f"/{BUCKET}")
    iam = boto3.client(
        "iam", endpoint_url=inside, region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test"
    )
    allowed = {"Effect": "Allow", "Action": ["s3:GetObject", "s3:ListBucket"], "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    iam.create_user(UserName="reader")
    iam.put_user_policy(UserName="reader", PolicyName="reads", PolicyDocument=policy)
    key = iam.create_access_key(UserName="reader")["AccessKey"]
    options = {**s3.options, "access_key_id": key["AccessKeyId"], "secret_access_key": key["SecretAccessKey"]}

    def enforce(after: str) -> None:
        request = urllib.request.Request(f"{inside}/moto-api/reset-auth", data=after.encode(), method="POST")
        request.add_header("Content-Type", "application/octet-stream")  # else it is taken for a form
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=20).close()

    enforce("0")
    try:
        found = await checked(s3.url, options)
    finally:
        enforce("inf")
    assert found.verdict is Verdict.FAILED
    assert "this host could not write an object" in found.seen
    assert "is it read-only" in found.advice
    assert "s3:PutObject" in found.advice
    assert s3.keys() == []
    assert key["SecretAccessKey"] not in found.seen + found.advice


async def test_a_bucket_that_does_not_exist_and_a_store_that_is_away_are_told(s3: S3) -> None:
    gone = await checked("s3://no-such-bucket/x", s3.options)
    assert gone.verdict is Verdict.FAILED
    assert "could not write" in gone.seen
    s3.front.set(Mood.GONE)
    away = await checked(s3.url, s3.options)
    assert away.verdict is Verdict.FAILED
    assert "does it answer?" in away.advice


async def test_a_store_that_hangs_holds_nobody_up(s3: S3) -> None:
    s3.front.set(Mood.HANGING)
    overrides: dict[str, object] = {"storage.url": s3.url, "storage.options": s3.options}
    examination = Examination(load_config(Path("/tmp"), environ={}, overrides=overrides), patience=1)
    (found,) = [one async for one in examination.findings(set(NAMES) - {"storage"})]
    assert found.verdict is Verdict.FAILED
    assert "no answer within 1 s" in found.seen
    assert examination.gave_up
