# The projector's image. From the root of the repository:
#
#   docker build -f deployments/docker/projector.Dockerfile --build-arg VERSION=1.2.3 .
#
# `make images` builds the first stage alone, around a binary that is built
# outside, and so needs no registry. Everything that both stages say after
# FROM must agree; a test compares them.
ARG GO_IMAGE=golang:1.26.8-bookworm
ARG BASE_IMAGE=gcr.io/distroless/static-debian12:nonroot

FROM scratch AS prebuilt
ARG VERSION=devel
LABEL org.opencontainers.image.title="change-relay projector" \
      org.opencontainers.image.version="$VERSION"
COPY ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY projector /usr/local/bin/projector
USER 65532:65532
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s --retries=3 CMD ["/usr/local/bin/projector", "health"]
ENTRYPOINT ["/usr/local/bin/projector"]

FROM ${GO_IMAGE} AS build
ARG VERSION=devel
WORKDIR /src
COPY pkg pkg
COPY services/projector services/projector
ENV CGO_ENABLED=0 GOWORK=off GOTOOLCHAIN=local
RUN cd services/projector && go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /out/projector ./cmd/projector

FROM ${BASE_IMAGE}
ARG VERSION=devel
LABEL org.opencontainers.image.title="change-relay projector" \
      org.opencontainers.image.version="$VERSION"
COPY --from=build /out/projector /usr/local/bin/projector
USER 65532:65532
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s --retries=3 CMD ["/usr/local/bin/projector", "health"]
ENTRYPOINT ["/usr/local/bin/projector"]
