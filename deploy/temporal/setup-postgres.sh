#!/bin/sh
# Creates Temporal's two databases in PostgreSQL, and brings their schemas to this server's version: before each start.
set -eu

tool() { # DATABASE COMMAND...
    database=$1
    shift
    temporal-sql-tool --plugin postgres12 --endpoint "$POSTGRES_SEEDS" --port 5432 --user "$POSTGRES_USER" --database "$database" "$@"
}

for database in temporal temporal_visibility; do
    case $database in
    temporal) schema=temporal ;;
    *) schema=visibility ;;
    esac
    tool "$database" create
    # Of a schema that is there already, both leave what they find.
    tool "$database" setup-schema --version 0.0
    tool "$database" update-schema --schema-dir "/etc/temporal/schema/postgresql/v12/$schema/versioned"
done
