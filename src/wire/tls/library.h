/*
 * OpenSSL, loaded when the first TLS connection needs it: no program links it, so that a command over a local socket neither
 * loads it nor pays for it. Everything that wire/tls calls stands in one list; a function that is missing is found at loading.
 */
#pragma once

#define OPENSSL_SUPPRESS_DEPRECATED /* SHA256_Init() and its kin: see tls_sha256() */

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

// clang-format off
#define TLS_FUNCTIONS(X) \
	X(ASN1_INTEGER_set_uint64) \
	X(ASN1_STRING_get0_data) \
	X(ASN1_STRING_length) \
	X(ASN1_TIME_set) \
	X(ASN1_TIME_to_tm) \
	X(BIO_ctrl) \
	X(BIO_free) \
	X(BIO_new) \
	X(BIO_new_mem_buf) \
	X(BIO_read) \
	X(BIO_s_mem) \
	X(BIO_write) \
	X(ERR_clear_error) \
	X(ERR_peek_last_error) \
	X(ERR_reason_error_string) \
	X(EVP_PKEY_Q_keygen) \
	X(EVP_PKEY_free) \
	X(EVP_sha256) \
	X(GENERAL_NAMES_free) \
	X(OPENSSL_sk_free) \
	X(OPENSSL_sk_new_null) \
	X(OPENSSL_sk_num) \
	X(OPENSSL_sk_push) \
	X(OPENSSL_sk_value) \
	X(OSSL_LIB_CTX_get0_global_default) \
	X(PEM_read_bio_PrivateKey) \
	X(PEM_read_bio_X509) \
	X(PEM_write_bio_PrivateKey) \
	X(PEM_write_bio_X509) \
	X(SHA256_Final) \
	X(SHA256_Init) \
	X(SHA256_Update) \
	X(SSL_CTX_check_private_key) \
	X(SSL_CTX_ctrl) \
	X(SSL_CTX_free) \
	X(SSL_CTX_get_cert_store) \
	X(SSL_CTX_new) \
	X(SSL_CTX_set_alpn_protos) \
	X(SSL_CTX_set_alpn_select_cb) \
	X(SSL_CTX_set_cert_verify_callback) \
	X(SSL_CTX_set_cipher_list) \
	X(SSL_CTX_set_default_verify_dir) \
	X(SSL_CTX_set_num_tickets) \
	X(SSL_CTX_set_options) \
	X(SSL_CTX_set_verify) \
	X(SSL_CTX_use_PrivateKey) \
	X(SSL_CTX_use_certificate) \
	X(SSL_ctrl) \
	X(SSL_do_handshake) \
	X(SSL_free) \
	X(SSL_get0_param) \
	X(SSL_get_error) \
	X(SSL_get_ex_data) \
	X(SSL_get_ex_data_X509_STORE_CTX_idx) \
	X(SSL_new) \
	X(SSL_read) \
	X(SSL_set0_rbio) \
	X(SSL_set0_wbio) \
	X(SSL_set_accept_state) \
	X(SSL_set_connect_state) \
	X(SSL_set_ex_data) \
	X(SSL_shutdown) \
	X(SSL_write) \
	X(TLS_client_method) \
	X(TLS_server_method) \
	X(X509V3_EXT_conf_nid) \
	X(X509V3_set_ctx) \
	X(X509_EXTENSION_free) \
	X(X509_NAME_add_entry_by_txt) \
	X(X509_STORE_CTX_get0_untrusted) \
	X(X509_STORE_CTX_get_current_cert) \
	X(X509_STORE_CTX_get_error) \
	X(X509_STORE_CTX_get_ex_data) \
	X(X509_STORE_CTX_set0_trusted_stack) \
	X(X509_STORE_add_cert) \
	X(X509_VERIFY_PARAM_set1_host) \
	X(X509_VERIFY_PARAM_set1_ip_asc) \
	X(X509_VERIFY_PARAM_set_hostflags) \
	X(X509_add_ext) \
	X(X509_digest) \
	X(X509_free) \
	X(X509_get0_notAfter) \
	X(X509_get0_notBefore) \
	X(X509_get_ext_d2i) \
	X(X509_get_serialNumber) \
	X(X509_get_subject_name) \
	X(X509_getm_notAfter) \
	X(X509_getm_notBefore) \
	X(X509_new) \
	X(X509_set_issuer_name) \
	X(X509_set_pubkey) \
	X(X509_set_version) \
	X(X509_sign) \
	X(X509_verify_cert) \
	X(X509_verify_cert_error_string)
// clang-format on

struct tls_library {
#define X(name) __typeof__(name) *name;
	TLS_FUNCTIONS(X)
#undef X
};

/* NULL: this machine has none that fits. The first call loads it; only one thread may make it. */
const struct tls_library *tls_library(void);
