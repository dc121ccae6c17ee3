#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian packages that a build needs and that are missing. When none is missing it is
# quick and prints nothing. Without root or sudo it prints the command that someone with these
# rights has to run. On a system without dpkg it changes nothing, and CMake reports what it cannot
# find.
#
#   cmake/install_packages.sh          what ./demo.sh and ./test.sh need
#   cmake/install_packages.sh --ci     also clang, its tools and valgrind, for the lanes of .ci/run
set -euo pipefail

# a|b: either will do; the first one that the system offers is installed.
packages=(
  cmake ninja-build g++ ccache libssl-dev
  'libboost1.81-dev|libboost1.83-dev|libboost1.88-dev' libleveldb-dev libfmt-dev  # the library
  libcli11-dev libedit-dev  # the shell: its options, and the lines that are typed into it
  catch2 protobuf-compiler  # the tests; protoc is the oracle of the codec
)
case "${1:-}" in
  '') ;;
  # llvm brings the symbolizer, without which a sanitizer's report is a list of addresses.
  # valgrind counts the instructions of the engine's main paths.
  --ci)
    packages+=(clang clang-tidy clang-format llvm 'libclang-rt-14-dev|libclang-rt-19-dev' valgrind)
    ;;
  *) echo "install_packages.sh: unknown argument '$1'; it takes --ci or nothing" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null; then
  echo "install_packages.sh: no dpkg here, so nothing is installed; needed are: ${packages[*]}" >&2
  exit 0
fi

# The missing packages, one line per entry of the list. One call of dpkg-query, because this runs
# before every build.
installed=" $(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null |
  awk '$1 == "installed" {print $2}' | tr '\n' ' ') "
missing=()
for entry in "${packages[@]}"; do
  found=no
  for package in ${entry//|/ }; do
    if [[ $installed == *" $package "* ]]; then found=yes; fi
  done
  if [[ $found == no ]]; then missing+=("$entry"); fi
done
if ((${#missing[@]} == 0)); then exit 0; fi

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "install_packages.sh: packages are missing, and neither root nor sudo is there." >&2
    echo "  Ask for:  apt-get install ${missing[*]%%|*}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Acquire::Retries=3)

echo "== installing ${missing[*]%%|*}"
# A package source that cannot be reached fails the update, but the lists of the others may suffice.
"${apt[@]}" update ||
  echo "install_packages.sh: apt-get update failed; trying with the lists that are there" >&2
wanted=()
for entry in "${missing[@]}"; do
  choice=${entry%%|*}
  for package in ${entry//|/ }; do
    if [[ -n $(apt-cache search --names-only "^${package//+/\\+}\$" 2>/dev/null) ]]; then
      choice=$package
      break
    fi
  done
  wanted+=("$choice")
done
if ! "${apt[@]}" install -y --no-install-recommends "${wanted[@]}"; then
  echo "install_packages.sh: apt-get could not install: ${wanted[*]}" >&2
  echo "  The lines above say why. Without network, install them by hand and run this again." >&2
  exit 1
fi
