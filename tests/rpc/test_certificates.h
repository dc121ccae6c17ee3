// SPDX-License-Identifier: Apache-2.0
//
// Certificates for tests, made with OpenSSL when they are needed: an authority, and keys and
// certificates that it signs. Their files live as long as the directory that they are put in.

#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "support/catch.h"
#include "support/temporary_directory.h"

namespace pv2::testing {

/// The files of one holder.
struct CertificateFiles {
  std::string certificate;
  std::string key;
};

/// Signs certificates.
class TestAuthority {
 public:
  /// Its own certificate is in `certificate()`.
  TestAuthority(const TemporaryDirectory& files, const std::string& name)
      : files_(files), name_(name), key_(EVP_EC_gen("P-256")), certificate_(X509_new()) {
    fill(certificate_.get(), name, key_.get());
    extend(certificate_.get(), NID_basic_constraints, "critical,CA:TRUE");
    extend(certificate_.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
    REQUIRE(X509_sign(certificate_.get(), key_.get(), EVP_sha256()) != 0);
    write(certificate(), [this](std::FILE* to) { PEM_write_X509(to, certificate_.get()); });
  }

  [[nodiscard]] std::string certificate() const { return files_.path(name_ + ".pem"); }

  /// `alternatives`: "DNS:db.example,IP:127.0.0.1".
  [[nodiscard]] CertificateFiles sign(const std::string& name,
                                      const std::string& alternatives) const {
    const Key key(EVP_EC_gen("P-256"));
    const Certificate certificate(X509_new());
    fill(certificate.get(), name, key.get());
    extend(certificate.get(), NID_subject_alt_name, alternatives);
    REQUIRE(X509_sign(certificate.get(), key_.get(), EVP_sha256()) != 0);
    const CertificateFiles paths{files_.path(name + ".pem"), files_.path(name + ".key")};
    write(paths.certificate, [&](std::FILE* to) { PEM_write_X509(to, certificate.get()); });
    write(paths.key, [&](std::FILE* to) {
      PEM_write_PrivateKey(to, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
    return paths;
  }

 private:
  struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
    void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
  };
  using Key = std::unique_ptr<EVP_PKEY, Free>;
  using Certificate = std::unique_ptr<X509, Free>;

  void fill(X509* certificate, const std::string& name, EVP_PKEY* key) const {
    static long serial = 1;
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -24L * 3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 24L * 3600);
    set_name(X509_get_subject_name(certificate), name);
    set_name(X509_get_issuer_name(certificate), name_);
    REQUIRE(X509_set_pubkey(certificate, key) == 1);
  }
  static void set_name(X509_NAME* to, const std::string& name) {
    const auto* const text = reinterpret_cast<const unsigned char*>(name.c_str());
    REQUIRE(X509_NAME_add_entry_by_txt(to, "CN", MBSTRING_UTF8, text, -1, -1, 0) == 1);
  }
  static void extend(X509* certificate, int kind, const std::string& value) {
    const std::unique_ptr<X509_EXTENSION, Free> extension(
        X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str()));
    REQUIRE(extension != nullptr);
    REQUIRE(X509_add_ext(certificate, extension.get(), -1) == 1);
  }
  template <class Write>
  static void write(const std::string& path, Write write_to) {
    std::FILE* const to = std::fopen(path.c_str(), "w");
    REQUIRE(to != nullptr);
    write_to(to);
    REQUIRE(std::fclose(to) == 0);
  }

  const TemporaryDirectory& files_;
  const std::string name_;
  Key key_;
  Certificate certificate_;
};

}  // namespace pv2::testing
