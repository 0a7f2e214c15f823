"""Tokens for Amazon MSK, signed with AWS credentials. The extra `aws` installs Amazon's signer.

https://docs.aws.amazon.com/msk/latest/developerguide/iam-access-control.html
"""

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.net.sasl.errors import AuthenticationError, kind_and_place, library
from spark_kafka_source.net.sasl.logins import AwsLogin
from spark_kafka_source.net.sasl.tokens import Token
from spark_kafka_source.secret import Secret

MECHANISM = "AWS_MSK_IAM"
REGION_VARIABLE = "AWS_REGION"

_BROKER = re.compile(r".+\.kafka(?:-serverless)?\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")
# The lifetime that the signer signs for. The expiry that it returns is wrong if the machine's clock
# is not set to UTC.
_LIFETIME_SECONDS = 900


@dataclass(frozen=True, slots=True)
class AwsTokens:
    """Tokens for the brokers of one region."""

    login: AwsLogin
    region: str

    def token(self) -> Token:
        """Sign a new token. Raises `AuthenticationError` if there are no credentials."""
        sign = _signing(_library(), self.login, self.region)
        signed_at_seconds = time.time()
        try:
            value, _ = sign()
        except Exception as error:  # AWS's libraries raise errors of many families.
            found = f"no token could be signed: {kind_and_place(error)}"
        else:
            return Token(Secret(value), signed_at_seconds + _LIFETIME_SECONDS)
        # Raised outside the `except` block: the error's text may hold a key, or a signed URL.
        raise AuthenticationError(
            MECHANISM,
            found,
            "Check the AWS credentials of this machine, or the profile or role in"
            " 'kafka.sasl.jaas.config'",
        )


def region_of(host: str) -> str:
    """Return the region in a broker's name, or `AWS_REGION` from the environment.

    Raises `ConfigurationError` if neither gives it.
    """
    match = _BROKER.fullmatch(host.lower())
    region = match["region"] if match else os.environ.get(REGION_VARIABLE, "")
    if not region:
        raise ConfigurationError(
            "kafka.bootstrap.servers",
            "{} does not name its AWS region",
            f"Give the brokers' own names, or set {REGION_VARIABLE} in the environment",
            host,
        )
    return region


def _signing(library: Any, login: AwsLogin, region: str) -> Callable[[], tuple[str, int]]:
    if login.role_arn:
        name = {"sts_session_name": login.role_session_name} if login.role_session_name else {}
        return lambda: library.generate_auth_token_from_role_arn(region, login.role_arn, **name)
    if login.profile:
        return lambda: library.generate_auth_token_from_profile(region, login.profile)
    return lambda: library.generate_auth_token(region)


def _library() -> Any:
    return library(
        "aws_msk_iam_sasl_signer.MSKAuthTokenProvider",
        mechanism=MECHANISM,
        package="aws-msk-iam-sasl-signer-python",
        extra="aws",
    )
