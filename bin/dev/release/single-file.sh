#!/bin/sh
# Portcullis VERSION for Linux on MACHINE: the PDP, the sidecar and the command line in one file.
#   portcullis pdp serve      portcullis sidecar run      portcullis setup acme
# Links named portcullis-pdp and portcullis-sidecar run these programs by their own names.
# The first start unpacks it into ${XDG_CACHE_HOME:-$HOME/.cache}/portcullis, later starts use what is there.
set -eu
fail() { echo "portcullis: $1" >&2; exit 1; }
[ "$(uname -s) $(uname -m)" = "Linux MACHINE" ] || fail "this file is for Linux on MACHINE, and this machine is $(uname -s) on $(uname -m)"
cache=${XDG_CACHE_HOME:-${HOME:-}/.cache}
case $cache in /.cache) fail "set HOME or XDG_CACHE_HOME: it says where this file may unpack itself" ;; esac
root=$cache/portcullis/DIGEST
if [ ! -e "$root/.whole" ]; then
  mkdir -p "$cache/portcullis" || fail "cannot write to $cache; set XDG_CACHE_HOME to a folder that this user may write to"
  parts=$(mktemp -d "$cache/portcullis/unpack.XXXXXX") || fail "cannot write to $cache/portcullis"
  trap 'rm -rf "$parts"' EXIT INT TERM
  line=$(awk '/^__ARCHIVE_BELOW__$/ { print NR + 1; exit }' "$0")
  tail -n "+$line" "$0" >"$parts/archive"
  found=$(sha256sum "$parts/archive" | cut -d ' ' -f 1)
  [ "$found" = DIGEST ] || fail "this file is not whole; download it again, and compare it with SHA256SUMS"
  mkdir "$parts/root"
  tar -xzf "$parts/archive" -C "$parts/root" --no-same-owner || fail "could not unpack into $cache; is the disk full?"
  : >"$parts/root/.whole"
  # Another start may have been first; then its folder stays.
  mv -T "$parts/root" "$root" 2>/dev/null || [ -e "$root/.whole" ] || fail "could not unpack into $root; remove it and try again"
  rm -rf "$parts"
  trap - EXIT INT TERM
fi
program=$(basename -- "$0")
case $program in
  portcullis-pdp) program=pdp ;;
  portcullis-sidecar) program=sidecar ;;
  *)
    program=${1-}
    case $program in pdp | sidecar) shift ;; esac
    ;;
esac
case $program in
  pdp) exec "$root/bin/node" --max-semi-space-size=16 "$root/pdp/bin.js" "$@" ;;
  sidecar) exec "$root/bin/node" --max-semi-space-size=8 "$root/sidecar/bin.js" "$@" ;;
  *) exec "$root/bin/node" "$root/pdp/client-bin.js" "$@" ;;
esac
