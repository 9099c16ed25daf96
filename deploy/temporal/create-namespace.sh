#!/bin/sh
# Makes the namespace that threads live in, once the server answers.
set -eu

until temporal operator cluster health --address "$TEMPORAL_ADDRESS"; do sleep 1; done
temporal operator namespace describe --address "$TEMPORAL_ADDRESS" --namespace "$NAMESPACE" >/dev/null 2>&1 ||
    temporal operator namespace create --address "$TEMPORAL_ADDRESS" --namespace "$NAMESPACE" --retention 72h
