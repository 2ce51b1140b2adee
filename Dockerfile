# syntax=docker/dockerfile:1

# The image of the agent. Two targets:
#
#   docker build -t dra-exporter .                        NVML and DCGM: glibc, cgo
#   docker build -t dra-exporter:static --target static . no vendor libraries
#
# For several architectures: docker buildx build --platform linux/amd64,linux/arm64 .
#
# Both run as an unprivileged user by default. The DaemonSet runs the agent as
# root, without capabilities, because the kubelet's socket is root's.
#
# Base images are named by tags. The release workflow looks their digests up and
# builds from these (CONTRIBUTING.md, Releasing).

ARG GO_VERSION=1.26.8
# Not older than the headers that go-dcgm was made from (go.mod): DCGM refuses
# structures that are newer than its library.
ARG DCGM_VERSION=4.6.1-1
ARG DCGM_IMAGE=nvcr.io/nvidia/cloud-native/dcgm:${DCGM_VERSION}-ubuntu24.04

# Everything is compiled on the builder's own architecture: emulating a compiler
# is slow.
FROM --platform=$BUILDPLATFORM golang:${GO_VERSION}-bookworm AS go

FROM go AS source
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .

FROM source AS build
ARG BUILDARCH TARGETARCH
ARG VERSION=unknown REVISION=unknown
# The compiler's version is not pinned: Debian's archive keeps one version of a
# package, so a pinned one fails with the next update (docs/security.md).
RUN if [ "$TARGETARCH" != "$BUILDARCH" ]; then \
      apt-get update && apt-get install -y --no-install-recommends "crossbuild-essential-$TARGETARCH"; \
    fi
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    case "$TARGETARCH" in \
      amd64) cc=x86_64-linux-gnu-gcc ;; \
      arm64) cc=aarch64-linux-gnu-gcc ;; \
      *) echo "no compiler known for $TARGETARCH" >&2; exit 1 ;; \
    esac; \
    CGO_ENABLED=1 GOARCH=$TARGETARCH CC=$cc go build -trimpath \
      -ldflags "-s -w -extldflags=-Wl,-z,lazy \
        -X github.com/prometheus/common/version.Version=$VERSION \
        -X github.com/prometheus/common/version.Revision=$REVISION" \
      -o /dra-exporter ./cmd/dra-exporter

FROM source AS build-static
ARG TARGETARCH
ARG VERSION=unknown REVISION=unknown
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOARCH=$TARGETARCH go build -trimpath \
      -ldflags "-s -w \
        -X github.com/prometheus/common/version.Version=$VERSION \
        -X github.com/prometheus/common/version.Revision=$REVISION" \
      -o /dra-exporter ./cmd/dra-exporter

# Of NVIDIA's image one file is taken: the library that talks to a DCGM host
# engine (https://github.com/NVIDIA/DCGM, Apache-2.0). Without a host engine it
# would want more of DCGM; then mount DCGM's own libraries.
FROM ${DCGM_IMAGE} AS dcgm

# What the library asks of others must be in the last stage, whose Debian is the
# builder's. It is looked for here: the last stage has no shell to do it in, and
# the agent would find out on a node.
FROM go AS libraries
COPY --from=dcgm /usr/lib/*-linux-gnu/libdcgm.so.4 /libraries/
RUN cd /libraries && \
    for needed in $(readelf --dynamic libdcgm.so.4 | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p'); do \
      case "$needed" in \
        libc.so.6 | libm.so.6 | libdl.so.2 | librt.so.1 | libpthread.so.0 | ld-linux-*.so.* | libgcc_s.so.1 | libstdc++.so.6) ;; \
        *) echo "libdcgm.so.4 needs $needed, which the image does not have" >&2; exit 1 ;; \
      esac; \
    done && \
    has="$(getconf GNU_LIBC_VERSION | sed 's/glibc /GLIBC_/')" && \
    wants="$(readelf --version-info libdcgm.so.4 | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)" && \
    if [ "$(printf '%s\n' "$has" "$wants" | sort -V | tail -n 1)" != "$has" ]; then \
      echo "libdcgm.so.4 needs $wants, and the image has $has" >&2; exit 1; \
    fi

FROM gcr.io/distroless/static-debian12:nonroot AS static
ARG VERSION=unknown REVISION=unknown CREATED=1970-01-01T00:00:00Z
LABEL org.opencontainers.image.title=dra-exporter \
      org.opencontainers.image.description="What each Kubernetes ResourceClaim gets of each device, without NVML and DCGM" \
      org.opencontainers.image.url=https://github.com/dra-exporter/dra-exporter \
      org.opencontainers.image.source=https://github.com/dra-exporter/dra-exporter \
      org.opencontainers.image.licenses=Apache-2.0 \
      org.opencontainers.image.version=$VERSION \
      org.opencontainers.image.revision=$REVISION \
      org.opencontainers.image.created=$CREATED
COPY LICENSE /usr/share/doc/dra-exporter/copyright
COPY --from=build-static /dra-exporter /dra-exporter
USER 65532:65532
EXPOSE 9420 9421
ENTRYPOINT ["/dra-exporter"]

# The last stage is the default: glibc, for libraries that are opened at run
# time, of the Debian that the builder stage has too, and libgcc, which
# libraries written in C++ may want.
FROM gcr.io/distroless/cc-debian12:nonroot AS glibc
ARG VERSION=unknown REVISION=unknown CREATED=1970-01-01T00:00:00Z
LABEL org.opencontainers.image.title=dra-exporter \
      org.opencontainers.image.description="What each Kubernetes ResourceClaim gets of each device" \
      org.opencontainers.image.url=https://github.com/dra-exporter/dra-exporter \
      org.opencontainers.image.source=https://github.com/dra-exporter/dra-exporter \
      org.opencontainers.image.licenses=Apache-2.0 \
      org.opencontainers.image.version=$VERSION \
      org.opencontainers.image.revision=$REVISION \
      org.opencontainers.image.created=$CREATED
COPY LICENSE /usr/share/doc/dra-exporter/copyright
COPY --from=libraries /libraries/libdcgm.so.4 /usr/lib/libdcgm.so.4
COPY --from=build /dra-exporter /dra-exporter
USER 65532:65532
EXPOSE 9420 9421
ENTRYPOINT ["/dra-exporter"]
